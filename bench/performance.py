#!/usr/bin/env python3
"""Writes docs/performance.md, and README.md's table of speeds, from bench/results.

bench/performance.py [--check]

Each table is one run of `bench/run.sh` on one machine at one commit; the first line of its results
has both. The figures, their peers and their targets are in bench/claims.json. Ratios are taken within
a round, where both figures were measured one after the other. The page has the median, with minimum
and maximum in parentheses, and marks missed targets.

--check writes nothing and fails if the pages are not what the results give.
"""

import json
import statistics
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
PAGE = BENCH.parent / "docs" / "performance.md"
README = BENCH.parent / "README.md"

HEAD = """# Performance

<!-- Written by bench/performance.py from bench/results and bench/claims.json. Do not edit. -->

This page compares the mount with named peers, for users and engineers who want to know what it
costs. {missed} of {targets} targets are missed, and marked.

Each table is one run at one commit. A value is the median of all rounds, with the least and the
greatest in parentheses. With a peer, it is a ratio to that peer within each round. Ratios hold on
other machines better than rates do. The *pass-through* is a minimal FUSE daemon without a cache.

| more | page |
|---|---|
| peers, measures, and how to run it | [bench/README.md](../bench/README.md) |
| all rows | [bench/results](../bench/results) |
| the engine compared with other caches | [bench/engine](../bench/engine/README.md) |
| policies compared | [policy.md](policy.md#hit-ratios) |

"""


def read(group):
    """The header and the rows of a group's last full run, or None."""
    path = BENCH / "results" / f"{group}.jsonl"
    if not path.exists():
        return None
    lines = [json.loads(line) for line in path.read_text().splitlines() if line]
    return lines[0]["header"], lines[1:]


def number(value):
    """Three significant digits; whole numbers stay whole."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"


def rounds(rows, claim, peer):
    """Round to value, for the rows of a peer that a claim is about."""
    return {
        row.get("round", 0): row[claim["metric"]]
        for row in rows
        if row["peer"] == peer
        and claim["metric"] in row
        and all(row.get(key) == value for key, value in claim["where"].items())
    }


def measured(rows, claim):
    """The values of a claim, one a round: ratios where it names a peer."""
    ours = rounds(rows, claim, claim["peer"])
    if "against" not in claim:
        return list(ours.values())
    theirs = rounds(rows, claim, claim["against"])
    return [ours[number] / theirs[number] for number in ours if theirs.get(number)]


def line(rows, claim):
    """A row of a table, and whether its target was missed."""
    values = measured(rows, claim)
    against = claim.get("against", "–")
    if "at_least" in claim:
        target = f"at least {number(claim['at_least'])}"
    elif "at_most" in claim:
        target = f"at most {number(claim['at_most'])}"
    else:
        target = "–"
    if not values:
        return f"| {claim['what']} | {claim['peer']} | {against} | {target} | not measured | |", False
    median = statistics.median(values)
    shown = number(median)
    if len(values) > 1:
        shown += f" ({number(min(values))} to {number(max(values))})"
    if "at_least" in claim:
        missed = median < claim["at_least"]
    elif "at_most" in claim:
        missed = median > claim["at_most"]
    else:
        missed = None
    verdict = "" if missed is None else "**missed**" if missed else "met"
    row = f"| {claim['what']} | {claim['peer']} | {against} | {target} | {shown} | {verdict} |"
    return row, bool(missed)


def section(part):
    """A group's heading, origin of its figures and table, and how many targets it misses."""
    out = [f"## {part['heading']}", "", part["text"]]
    found = read(part["group"])
    if found is None:
        return out + ["", f"Not measured yet: `sudo bench/run.sh full {part['group']}`."], 0
    header, rows = found
    versions = header["versions"]
    out += [
        f"Measured {header['date']} at commit {versions['commit']}: {header['cpu']},",
        f"{header['memory_gib']} GiB, {header['kernel']}, {header['file_system']}; "
        f"load before {header['load_before']}.",
        "",
        "| measure | ogive as | compared with | target | result | |",
        "|---|---|---|---|---|---|",
    ]
    lines = [line(rows, claim) for claim in part["claims"]]
    return out + [row for row, _ in lines], sum(is_missed for _, is_missed in lines)


def page(parts):
    """The whole page."""
    sections = [section(part) for part in parts]
    claims = [claim for part in parts for claim in part["claims"]]
    targets = sum("at_least" in claim or "at_most" in claim for claim in claims)
    head = HEAD.format(missed=sum(missed for _, missed in sections), targets=targets)
    return head + "\n\n".join("\n".join(lines) for lines, _ in sections) + "\n"


def readme(parts):
    """README.md with a new table between the markers: how many times as fast."""
    rows = ["| | against | ogive |", "|---|---|--:|"]
    for part in parts:
        found = read(part["group"])
        for claim in part["claims"]:
            values = measured(found[1], claim) if found and "readme" in claim else []
            if values:
                median = statistics.median(values)
                times = 1 / median if "at_most" in claim else median
                against = claim["against"].split(",")[0].replace("passthrough", "a pass-through")
                rows.append(f"| {claim['readme']} | {against} | {number(times)} |")
    begin, end = "<!-- speed -->\n", "\n<!-- /speed -->"
    before, rest = README.read_text().split(begin)
    return before + begin + "\n".join(rows) + end + rest.split(end)[1]


def main():
    """Writes or checks the page."""
    parts = json.loads((BENCH / "claims.json").read_text())
    pages = {PAGE: page(parts), README: readme(parts)}
    if sys.argv[1:] == ["--check"]:
        for path, text in pages.items():
            if path.read_text() != text:
                sys.exit(f"{path.name} is not what bench/results gives: run bench/performance.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        for path, text in pages.items():
            path.write_text(text)


main()
