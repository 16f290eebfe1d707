#!/usr/bin/env python3
"""The results of other profilers for their own tests' inputs, for crates/profile/tests/others.rs.

usage: bench/profile/others.py OUT FLAMEGRAPH FILE...

OUT          a new directory: each input, with the expected result next to it
FLAMEGRAPH   a directory with stackcollapse-perf.pl
FILE         texts of perf script, and perf.data; packed ones (gzip, zlib) are unpacked

The expected result of a text comes from its own tool (folded stacks in results/ next to the text), or
from stackcollapse-perf.pl. The expected result of perf.data comes from perf script, for the first
event with samples. Both are sums by program. If the attributes of a file are longer than the installed
perf supports, perf gets a copy with shorter ones.

Then: OGIVE_OTHERS=OUT cargo test -p ogive-profile --test others
"""

import collections
import gzip
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

MODIFIERS = re.compile(r":[ukhHGpPSDIWebR]+$")
HEAD = re.compile(r"^\S.*?\s(?:\d+\s+)?([\w.:/=-]*[a-zA-Z][\w.:/=-]*):\s*$")


def unpacked(path):
    """The bytes of a file."""
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".gz"):
        return gzip.decompress(data)
    if path.endswith(".zlib"):
        for start in (0, 4):
            try:
                return zlib.decompress(data[start:])
            except zlib.error:
                pass
    return data


def folded(text):
    """Weights by program of folded stacks."""
    weights = collections.Counter()
    for line in text.decode(errors="replace").splitlines():
        stack, _, weight = line.rpartition(" ")
        weights[stack.split(";")[0]] += int(weight)
    return weights


def of_text(path, data, flamegraph):
    """Weights by program; events that differ in their modifiers alone are one."""
    folder, name = os.path.split(path)
    result = os.path.join(folder, "results", name.rsplit(".", 1)[0] + "-collapsed.txt")
    if os.path.exists(result):
        with open(result, "rb") as file:
            return folded(file.read())
    lines = data.decode(errors="replace").splitlines()
    events = dict.fromkeys(found[1] for line in lines if (found := HEAD.match(line)))
    first = MODIFIERS.sub("", next(iter(events), ""))
    weights = collections.Counter()
    tool = os.path.join(flamegraph, "stackcollapse-perf.pl")
    for event in [event for event in events if MODIFIERS.sub("", event) == first] or [None]:
        ask = ["perl", tool] + ([f"--event-filter={event}"] if event else [])
        # The tool drops a sample without a blank line after it.
        run = subprocess.run(ask, input=data + b"\n\n", capture_output=True, check=False)
        weights += folded(run.stdout)
    return weights


def for_older(data, known=128):
    """A file with its attributes cut to what an older perf knows, and without their names."""
    if data[:8] != b"PERFILE2" or len(data) < 104 or struct.unpack_from("<Q", data, 8)[0] == 16:
        return data
    size, at, length = struct.unpack_from("<QQQ", data, 16)
    if size - 16 <= known:
        return data
    whole, table = bytearray(data), bytearray()
    for start in range(at, at + length, size):
        entry = bytearray(data[start : start + known] + data[start + size - 16 : start + size])
        struct.pack_into("<I", entry, 4, known)
        table += entry
    whole[at : at + len(table)] = table
    struct.pack_into("<QQQ", whole, 16, known + 16, at, len(table))
    described = 1 << 12
    features = struct.unpack_from("<Q", data, 72)[0]
    if features & described:
        sections = sum(struct.unpack_from("<QQ", data, 40))
        skipped = bin(features & (described - 1)).count("1")
        after = sections + 16 * bin(features).count("1")
        rest = data[sections + 16 * (skipped + 1) : after]
        whole[sections + 16 * skipped : sections + 16 * skipped + len(rest)] = rest
        struct.pack_into("<Q", whole, 72, features & ~described)
    return bytes(whole)


def of_recording(data):
    """Samples and weights by program of the first event that sampled; None if perf fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf.data")
        with open(path, "wb") as file:
            file.write(for_older(data))
        ask = ["perf", "script", "-i", path, "-G", "-F", "comm,event,period"]
        run = subprocess.run(ask, capture_output=True, check=False)
        if run.returncode:
            return None
        text = run.stdout
        ask = ["perf", "evlist", "-i", path]
        order = subprocess.run(ask, capture_output=True, check=False).stdout
    events = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for line in text.decode(errors="replace").splitlines():
        found = re.match(r"\s*(.*?)\s+(\d+)\s+(\S.*):\s*$", line)
        if found:
            of = events[found[3]][found[1]]
            of[0] += 1
            of[1] += int(found[2])
    order = [event for event in order.decode(errors="replace").split("\n") if event in events]
    first = (order or list(events) or [None])[0]
    return events[first]


def main():
    """Makes the directory."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    out, flamegraph, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(out, exist_ok=True)
    for path in paths:
        data = unpacked(path)
        # Programs by name; "-" where only the weight is said.
        if data[:8] in (b"PERFILE2", b"2ELIFREP", b"PERFFILE"):
            mark, rows = "# samples", of_recording(data)
            if rows is None:
                print(f"perf cannot read {path}", file=sys.stderr)
                continue
            lines = [f"{count} {weight} {name}" for name, (count, weight) in rows.items()]
        else:
            mark, rows = "# stacks", of_text(path, data, flamegraph)
            lines = [f"- {weight} {name}" for name, weight in rows.items()]
        name = path.strip("/").replace("/", "+")
        with open(os.path.join(out, name), "wb") as file:
            file.write(data)
        with open(os.path.join(out, name + ".want"), "w", encoding="utf-8") as file:
            file.write("\n".join([mark, *sorted(lines)]) + "\n")


main()
