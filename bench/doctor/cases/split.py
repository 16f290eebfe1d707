#!/usr/bin/env python3
"""Split cases into a half to learn from and a half to check with, and verify both.

    split.py verify [DIRECTORY] [--not-in CASES.jsonl ...]   exit code 1 and a list if something is wrong
    split.py add CASES.jsonl [DIRECTORY]                     put each case into its half, then verify

A case belongs to `learn.jsonl` if the first byte of the SHA-256 of its id is even, else to
`check.jsonl`, so no author chooses. Authors of rules read only the learn half.
Python 3 standard library only.
"""
import argparse
import hashlib
import json
import os
import sys

sys.dont_write_bytecode = True
import render  # noqa: E402  (in this folder)
import score  # noqa: E402

HALVES = ("learn", "check")
USES = {"diagnose", "parse", "record"}
PROSE = {"report", "other", "threads_reported"}
ROLES = {"cause", "legit-work", "innocent", "not-cpu", "provoked-by-user-process", "provoked-by-kernel-config", "unknown"}
CONFIDENCE = {"high", "medium", "low"}
CASE = {"id", "url", "platform", "symptom", "facts", "truth", "use", "notes"}
TRUTH = {"class", "accept", "family", "zfs_role", "confidence", "summary", "remedy", "source"}


def half(case_id):
    """The half that a case belongs to."""
    return HALVES[hashlib.sha256(case_id.encode()).digest()[0] % 2]


def read(path, faults):
    """The cases of a file; a line that is not a JSON object is a fault."""
    cases = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                case = json.loads(line)
                case["id"] + case["url"]
                cases.append(case)
            except (ValueError, KeyError, TypeError) as e:
                faults.append(f"{os.path.basename(path)}:{number}: not a case: {e!r}")
    return cases


def faults_of(case):
    """The faults of one case."""
    missing = CASE - case.keys()
    if missing:
        return [f"lacks {', '.join(sorted(missing))}"]
    truth, out = case["truth"], []
    if TRUTH - truth.keys():
        return [f"truth lacks {', '.join(sorted(TRUTH - truth.keys()))}"]
    for c in [truth["class"], *truth["accept"]]:
        if c not in score.FAMILY:
            out.append(f"no such class: {c}")
    if score.FAMILY.get(truth["class"]) != truth["family"]:
        out.append(f"the family of {truth['class']} is not {truth['family']}")
    for value, known in ((case["use"], USES), (truth["zfs_role"], ROLES), (truth["confidence"], CONFIDENCE)):
        if value not in known:
            out.append(f"{value} is not one of {', '.join(sorted(known))}")
    if case["use"] == "diagnose" and not {k for k, v in case["facts"].items() if v} - PROSE:
        out.append("is for diagnosis but has no facts that a tool printed")
    if not truth["source"]:
        out.append("has no source for its truth")
    try:
        files = render.render(case)
        if not all(isinstance(text, str) and text.strip() for text in files.values()):
            out.append("renders an empty file")
    except Exception as e:  # a wrong fact may raise any exception
        out.append(f"does not render: {e!r}")
    return out


def verify(directory, others=()):
    """All faults of the two halves."""
    faults, ids, urls = [], {}, {}
    for other in others:
        for case in read(other, faults):
            urls.setdefault(case["url"], os.path.basename(other))
    for name in HALVES:
        path = os.path.join(directory, name + ".jsonl")
        if not os.path.exists(path):
            faults.append(f"{name}.jsonl is missing")
            continue
        for case in read(path, faults):
            here = f"{name}.jsonl: {case['id']}"
            if half(case["id"]) != name:
                faults.append(f"{here}: belongs to {half(case['id'])}.jsonl")
            if case["id"] in ids:
                faults.append(f"{here}: this id is also in {ids[case['id']]}")
            if case["url"] in urls:
                faults.append(f"{here}: its url is also in {urls[case['url']]}")
            ids[case["id"]] = urls[case["url"]] = name + ".jsonl"
            faults += [f"{here}: {f}" for f in faults_of(case)]
    return faults


def add(path, directory):
    """Append each case of a file to its half."""
    faults = []
    cases = read(path, faults)
    if faults:
        return faults
    for case in cases:
        with open(os.path.join(directory, half(case["id"]) + ".jsonl"), "a", encoding="utf-8") as f:
            f.write(json.dumps(case, ensure_ascii=False) + "\n")
    return []


def main(argv):
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(dest="verb", required=True)
    check = sub.add_parser("verify")
    check.add_argument("directory", nargs="?", default=here)
    check.add_argument("--not-in", nargs="+", default=[], help="files of cases whose sources must not be repeated")
    new = sub.add_parser("add")
    new.add_argument("cases")
    new.add_argument("directory", nargs="?", default=here)
    args = ap.parse_args(argv)
    faults = add(args.cases, args.directory) if args.verb == "add" else []
    faults += verify(args.directory, getattr(args, "not_in", []))
    for fault in faults:
        print(fault, file=sys.stderr)
    counts = []
    for name in HALVES:
        path = os.path.join(args.directory, name + ".jsonl")
        counts.append(f"{name} {sum(1 for line in open(path, encoding='utf-8') if line.strip()) if os.path.exists(path) else 0}")
    print(", ".join(counts) + (f"; {len(faults)} faults" if faults else "; no faults"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
