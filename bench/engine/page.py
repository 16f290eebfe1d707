#!/usr/bin/env python3
"""Writes the tables of bench/engine/README.md from bench/results/engine/results.jsonl.

bench/engine/page.py [--check]

Ratios are of CPU time, taken round by round: how many times ours another cache takes, so above 1
ours is cheaper. The page has the median and, in parentheses, the least and the greatest of all
rounds. --check writes nothing and fails if the page is not what the results give.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "README.md"
RESULTS = HERE.parent / "results" / "engine" / "results.jsonl"
PEERS = ["HyperClockCache", "quick_cache", "moka", "mini-moka", "foyer-memory", "lru, 64 mutexes"]
OURS = "ogive-arc"


def rows():
    """All rows of the results."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines() if line]


def machine(found, part):
    """The header of a part as a sentence."""
    headers = [row for row in found if row.get("header") == part]
    if not headers:
        return ""
    last = headers[-1]
    return (
        f"Measured {last['date']} UTC at commit {last['commit']} on {last['processors']} x {last['cpu']}; "
        f"load before {last['load_before']}.\n"
    )


def times(found, threads):
    """The ratios of each peer in each workload, with so many threads."""
    cells = {
        (row["workload"], row["candidate"]): row
        for row in found
        if row.get("threads") == threads and "times_ours" in row
    }
    workloads = list(dict.fromkeys(workload for workload, _ in cells))
    peers = [peer for peer in PEERS if any(name == peer for _, name in cells)]
    out = [f"| {threads} thread{'s' * (threads > 1)} | " + " | ".join(peers) + " |", "|---|" + "--:|" * len(peers)]
    for workload in workloads:
        own = [workload]
        for peer in peers:
            row = cells.get((workload, peer))
            low_high = "({times_ours_lowest:.2f}-{times_ours_highest:.2f})"
            own.append(("{times_ours:.2f} " + low_high).format(**row) if row else "-")
        out.append("| " + " | ".join(own) + " |")
    return "\n".join(out) + "\n"


def hits(found):
    """Hit ratios of the workload with a scan, of all requests and of the hot set."""
    out = ["| scan and zipf, 1 thread | hits | of the hot set | CPU ns |", "|---|--:|--:|--:|"]
    for row in found:
        if row.get("workload") == "scan and zipf" and row.get("threads") == 1:
            own = "{candidate} | {hit_percent:.1f}% | {hot_hit_percent:.1f}% | {cpu_ns:.0f}"
            out.append("| " + own.format(**row) + " |")
    return "\n".join(out) + "\n"


def memory(found):
    """Bytes of an entry."""
    out = ["| bytes an entry of 1 byte takes | full | after three times as many |", "|---|--:|--:|"]
    for row in found:
        if "memory" in row:
            out.append("| {memory} | {bytes_full:.0f} | {bytes_after:.0f} |".format(**row))
    return "\n".join(out) + "\n"


def counts(found):
    """Instructions, a row a candidate."""
    cells = {(row["candidate"], row["workload"]): row for row in found if "instructions" in row}
    names = list(dict.fromkeys(name for name, _ in cells))
    heads = {
        "read only, zipf 0.99": "hit, 65,536 entries",
        "read only, zipf 0.99, small": "hit, 1,024 entries",
        "scan and zipf": "half misses that evict",
    }
    out = ["| instructions | " + " | ".join(heads.values()) + " |", "|---|--:|--:|--:|"]
    for name in names:
        own = [cells.get((name, workload)) for workload in heads]
        figures = [f"{row['instructions']:,.0f}" if row else "-" for row in own]
        out.append(f"| {name} | " + " | ".join(figures) + " |")
    return "\n".join(out) + "\n"


def page(text):
    """The page with new tables between its markers."""
    found = rows()
    parts = {
        "times": machine(found, "times") + "\n" + "\n".join(times(found, n) for n in (1, 2, 8)),
        "hits": hits(found),
        "memory": machine(found, "memory") + "\n" + memory(found),
        "counts": machine(found, "counts") + "\n" + counts(found),
    }
    for name, table in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, rest = text.split(begin)
        text = before + begin + table + end + rest.split(end)[1]
    return text


def main():
    """Writes or checks the page."""
    text = page(PAGE.read_text())
    if sys.argv[1:] == ["--check"]:
        if text != PAGE.read_text():
            sys.exit("README.md is not what bench/results/engine gives: run bench/engine/page.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PAGE.write_text(text)


main()
