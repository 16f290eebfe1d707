#!/usr/bin/env python3
"""Counts the hits of two published simulators again: crates/sim/tests/peer_counts.csv, to which
`cargo test -p ogive-sim --test peers` holds ours.

    CAFFEINE=CLASSPATH bench/simulator/counts.py TRACES > crates/sim/tests/peer_counts.csv

TRACES is a directory with golden.csv (for the sizes), lirs/*.trace.gz and arc/OLTP.lis.zst. Every
key counts as one. Needs Python's package libcachesim (0.3.5, the bindings of libCacheSim), Java with
Caffeine's simulator (com.github.ben-manes.caffeine:simulator, 3.2.0) on the class path, and zstd.
"""

import csv
import gzip
import io
import os
import subprocess
import sys
import tempfile

import libcachesim

LIRS = "2_pools backf cpp cs gli loop multi1 multi2 multi3 ps scan sprite zigzag".split()
NAMES = ["arc-OLTP"] + ["lirs-" + name for name in LIRS]

# Our name, and libCacheSim's arguments for the same policy.
LIBCACHESIM = {
    "lru": libcachesim.LRU,
    "fifo": libcachesim.FIFO,
    "clock": lambda size: libcachesim.Clock(size, init_freq=0, n_bit_counter=1),
    "sieve": libcachesim.Sieve,
    "arc": libcachesim.ARC,
    "2q": lambda size: libcachesim.TwoQ(size, a_in_size_ratio=0.25, a_out_size_ratio=0.5),
    "s3-fifo": lambda size: libcachesim.S3FIFO(
        size, small_size_ratio=0.1, ghost_size_ratio=0.9, move_to_main_threshold=2
    ),
}

# Our name, Caffeine's, and whether keys are counted exactly.
CAFFEINE = [
    ("lirs", "irr.Lirs", False),
    ("w-tinylfu", "sketch.HillClimberWindowTinyLfu", False),
    ("w-tinylfu-fixed", "sketch.WindowTinyLfu", False),
    ("w-tinylfu-exact", "sketch.HillClimberWindowTinyLfu", True),
    ("w-tinylfu-fixed-exact", "sketch.WindowTinyLfu", True),
]
EXACT = "tiny-lfu { sketch = perfect-table, jitter.enabled = false }"


def keys(traces, name):
    family, name = name.split("-", 1)
    if family == "lirs":
        with gzip.open(f"{traces}/lirs/{name}.trace.gz", "rt") as lines:
            return [int(line.split()[0]) for line in lines if line.strip() and "*" not in line]
    text = subprocess.run(
        ["zstdcat", f"{traces}/arc/{name}.lis.zst"], capture_output=True, check=True
    ).stdout
    found = []
    for line in text.splitlines():
        start, count = (int(word) for word in line.split()[:2])
        found.extend(range(start, start + count))
    return found


def libcachesim_hits(make, size, trace):
    cache = make(size)
    request = libcachesim.Request()
    request.obj_size = 1
    hits = 0
    for key in trace:
        request.obj_id = key
        hits += cache.get(request)
    return hits


def caffeine_hits(path, size, exact):
    """Hits by Caffeine's name of the policy, of all policies that count alike."""
    policies = ", ".join(theirs for _, theirs, counts in CAFFEINE if counts == exact)
    settings = f"""caffeine.simulator {{
        policies = [ {policies} ], admission = [ Always ], report.format = csv
        maximum-size = {size}, files.paths = [ "lirs:{path}" ]
        hill-climber-window-tiny-lfu.strategy = [ simple ]
        {EXACT if exact else ""}
    }}"""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(settings)
        file.flush()
        program = "com.github.benmanes.caffeine.cache.simulator.Simulator"
        command = ["java", "-cp", os.environ["CAFFEINE"], f"-Dconfig.file={file.name}", program]
        text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    rows = csv.DictReader(io.StringIO(text.strip()))
    return {row["Policy"].split(" ")[0]: int(row["Hits"]) for row in rows if row.get("Hits")}


def main():
    traces = sys.argv[1]
    with open(f"{traces}/golden.csv") as file:
        golden = {(row[0], row[1]) for row in csv.reader(file)}
    print("trace,entries,simulator,policy,requests,hits")
    for name in NAMES:
        trace = keys(traces, name)
        sizes = sorted(int(size) for trace_name, size in golden if trace_name == name)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("".join(f"{key}\n" for key in trace))
            file.flush()
            for size in sizes:
                rows = []
                for exact in (False, True):
                    hits = caffeine_hits(file.name, size, exact)
                    for ours, theirs, counts in CAFFEINE:
                        if counts == exact:
                            rows.append(("Caffeine 3.2.0", ours, hits[theirs]))
                version = f"libCacheSim {libcachesim.__version__}"
                for ours, make in LIBCACHESIM.items():
                    rows.append((version, ours, libcachesim_hits(make, size, trace)))
                for simulator, policy, hits in sorted(rows):
                    print(f"{name},{size},{simulator},{policy},{len(trace)},{hits}", flush=True)


if __name__ == "__main__":
    main()
