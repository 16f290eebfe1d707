#!/usr/bin/env python3
"""Compares the callers that ogive and perf unwind from copied stacks.

`perf record --call-graph dwarf` records each program. A sample agrees if both find the same functions,
from the innermost to the outermost. Functions without a name agree with any name. Decorated names of
one function (`__GI___getdents64`, `getdents64`) count as the same.

Usage: callers.py [NAME=COMMAND ...]; OGIVE_BIN names the program.
"""
import collections, os, re, subprocess, sys, tempfile

PROGRAMS = [
    "gzip=head -c 60000000 /dev/urandom | gzip -c > /dev/null",
    "python3=/usr/bin/python3 -c 'import json\nfor i in range(200000): json.dumps({str(i): [i] * 9})'",
    "find=find /usr -name '*.none'",
]
PERF = ["perf", "script", "--no-inline", "-F", "comm,ip,sym", "-i"]


def plain(name):
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    name = re.sub(r"_\[[kij]\]$", "", name).split("@")[0]
    unknown = name.startswith("[") or name == ""
    return "?" if unknown else re.sub(r"^(__GI_|__libc_|__pi_)?_*", "", name).replace("64", "")


def of_perf(path, program):
    text = subprocess.run(PERF + [path], capture_output=True, text=True, errors="replace").stdout
    found = collections.Counter()
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if lines[0].strip() == program:
            frames = [line.split(None, 1) for line in lines[1:]]
            found[tuple(plain(frame[1]) if len(frame) > 1 else "?" for frame in frames)] += 1
    return found


def of_ogive(path, program):
    ogive = os.environ.get("OGIVE_BIN", "ogive")
    command = [ogive, "profile", path, "--format", "folded", "-o", "-"]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        thread, *frames = stack.split(";")
        if thread.rsplit("-", 1)[0] == program:
            found[tuple(plain(frame) for frame in reversed(frames))] += int(count)
    return found


def remove_matches(left, right, matches):
    """Removes matching stacks from both, and returns their number."""
    total = 0
    for stack in list(left):
        for other in [stack] + [other for other in right if matches(stack, other)]:
            count = min(left[stack], right[other])
            left[stack] -= count
            right[other] -= count
            total += count
    return total


def begins(a, b):
    return len(a) <= len(b) and all(x == y or "?" in (x, y) for x, y in zip(a, b))


for program in sys.argv[1:] or PROGRAMS:
    name, command = program.split("=", 1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf.data")
        record = ["perf", "record", "-q", "-F", "499", "--call-graph", "dwarf,32768", "-o", path]
        subprocess.run(record + ["sh", "-c", command], stdout=subprocess.DEVNULL, check=True)
        perf, ogive = of_perf(path, name), of_ogive(path, name)
        samples = max(1, sum(perf.values()))
        both = remove_matches(perf, ogive, lambda a, b: len(a) == len(b) and begins(a, b))
        # perf 6.1 stops at the first function of a library in some recordings.
        further = remove_matches(perf, ogive, begins)
        shares = f"{both * 100 / samples:.1f}% agree, {further * 100 / samples:.1f}% are longer in ogive"
        print(f"{name}: of {samples} samples {shares}")
