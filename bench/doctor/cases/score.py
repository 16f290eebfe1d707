#!/usr/bin/env python3
"""Score answers of a diagnosis tool against the truth of the cases.

    score.py CASES.jsonl ANSWERS [--map MAP.json] [--rules DIR] [--use diagnose] [--totals] [--json]

ANSWERS is a folder with one <id>.json per case:

    {"findings": [{"id": "<class or rule id>", "confidence": 0.8}, ...], "verdict": "..."}

Findings are ranked by confidence (highest first) when each of them has one,
else in the given order.  Without findings, or with a verdict that the evidence
does not suffice, the class `unknown` is first.

MAP.json translates rule ids to classes: {"rule": "class"}, {"rule": ["class", ...]}
for a rule that cannot tell several classes apart (such an answer can be accepted,
never exact), {"rule": null} for findings that name no cause (skipped), and
{"verdict:<text>": "class"} for verdicts.

An answer without a cause may name a place ("62% goes into compress/gzip"). A place
never counts as a right cause. With --rules, the folder of the rules, the places of
the true cause are counted separately: the subsystems and roles that its rule uses.

--totals prints neither names nor answers of cases, only the number of right answers
per family and of misses per kind: for cases that must stay unseen.
Python 3 standard library only.
"""
import argparse
import json
import os
import re
import sys
import tomllib
from collections import defaultdict

FAMILIES = {
    "allocator": "metaslab-fragmentation",
    "arc-prune-evict": "arc-evict-loop-bug arc-evict-random-sublist arc-prune-dnode-limit arc-prune-many-mounts"
                       " arc-prune-meta-pinned arc-prune-numa-bug freebsd-arc-prune-dispatch",
    "arc-sizing": "arc-collapse l2arc-header-overload memory-overcommit-arc-min",
    "background-work": "async-destroy-backlog background-free-or-scan background-upgrade free-storm-io pool-import-work quota-accounting"
                       " snapshot-destroy-storm unlinked-set-drain",
    "checksum-parity": "checksum-cost module-load-benchmark raidz-parity-cost scrub-cost simd-unavailable-raidz-fletcher",
    "compression": "arc-decompress-cost compression-cost recordsize-amplification",
    "configuration": "bad-tunable cache-disabled",
    "dbuf-cache": "dbuf-evict-contention",
    "dedup-clone": "brt-clone-delete dedup-arc-buf-chain dedup-ddt",
    "device": "device-failure-spin",
    "encryption": "encryption-ccm encryption-cost encryption-fpu-overhead encryption-no-simd",
    "forced-sync": "recv-forced-txg seek-hole-forced-sync txg-forced-sync txg-sync-loop",
    "innocent": "arc-memory-normal counter-misread innocent-hardware innocent-kswapd innocent-loadavg-dstate innocent-user-process"
                " iotop-artifact latency-bound-single-stream memory-shortage slow-device sync-write-latency workload-legit"
                " write-throttle zfs-like-btrfs-qgroup",
    "kernel-reclaim": "abd-scatter-fragmentation kernel-init-on-alloc kernel-shrinker-storm kmem-reap-tlb-storm"
                      " page-reclaim-lru-lock spl-slab-reclaim swap-on-zvol",
    "lock-contention": "arc-list-lock-contention dbuf-hash-contention lock-contention-unspecified object-alloc-contention prefetch-lock-contention"
                       " stats-cacheline-contention vdev-queue-lock-contention zio-taskq-contention zvol-taskq-contention",
    "prefetch": "prefetch-waste readdir-prefetch-nfs",
    "send-recv": "recv-writer-cpu",
    "threads": "taskq-thread-churn",
    "unknown": "unknown",
    "vfs-path": "cached-read-cost dirent-scan metadata-path-overhead mmap-read-path",
    "zfs-userland": "admin-command-scaling monitoring-poll udev-zvol-storm userland-zdb-debug zed-loop",
}
FAMILY = {c: family for family, classes in FAMILIES.items() for c in classes.split()}

# Classes that do not blame ZFS; every other class does.
NO_BLAME = {c for c, family in FAMILY.items() if family in ("innocent", "unknown")}
NO_BLAME |= {"lock-contention-unspecified", "page-reclaim-lru-lock", "kernel-init-on-alloc"}

BLAMELESS_ROLES = {"innocent", "not-cpu", "unknown"}
OPEN_VERDICTS = {"unknown", "inconclusive", "insufficient", "insufficient evidence", "not enough evidence", "undetermined"}
COUNTERS = ("exact", "accepted", "top3", "family", "false_accusation")
# Answers whose first class is not "unknown", and the right ones among them.
NAMED = ("named", "named_right")


def ranking(answer, mapping):
    """Ordered list of candidate sets of classes, best first."""
    findings = [f for f in answer.get("findings", []) if isinstance(f, dict) and "id" in f]
    if all(isinstance(f.get("confidence"), (int, float)) for f in findings):
        findings = sorted(findings, key=lambda f: -f["confidence"])
    ranked = []
    for f in findings:
        target = mapping.get(f["id"], f["id"])
        if target is None:
            continue
        entry = frozenset([target] if isinstance(target, str) else target)
        if entry and entry not in ranked:
            ranked.append(entry)
    verdict = answer.get("verdict")
    if isinstance(verdict, str):
        target = mapping.get("verdict:" + verdict)
        if target is None and verdict.lower().replace("-", " ").replace("_", " ") in OPEN_VERDICTS:
            target = "unknown"
        if target:
            entry = frozenset([target] if isinstance(target, str) else target)
            ranked = [entry] + [r for r in ranked if r != entry]
    return ranked or [frozenset(["unknown"])]


def judge(truth, ranked):
    right = {truth["class"], *truth["accept"]}
    families = {truth["family"]} | {FAMILY.get(c) for c in truth["accept"]}
    first = ranked[0] if ranked else frozenset()
    accepted = bool(first & right)
    named = bool(first) and first != {"unknown"}
    return {
        "named": named,
        "named_right": named and accepted,
        "exact": first == {truth["class"]},
        "accepted": accepted,
        "top3": any(r & right for r in ranked[:3]),
        "family": accepted or bool({FAMILY.get(c) for c in first} & families),
        "false_accusation": bool(first) and truth["zfs_role"] in BLAMELESS_ROLES and not accepted and not first <= NO_BLAME,
    }


def places(rules, causes):
    """The subsystems and roles in the signs of one of these causes, from the rules in a folder."""
    names = set()
    for cause in causes:
        try:
            with open(os.path.join(rules, cause + ".toml"), "rb") as f:
                rule = tomllib.load(f)
        except FileNotFoundError:
            continue
        speaks = [rule.get("share", "")] + [s["when"] for s in rule.get("signs", []) if s.get("weight", 0) > 0]
        for listed in re.findall(r'(?:subsystem|role)\("([^"]+)"\)', " ".join(speaks)):
            names |= {name.strip() for name in listed.split(",")}
    return names


def is_there(place, names):
    """Whether a place is one of the names, a part of one, or a parent of one."""
    within = lambda a, b: a == b or a.startswith(b + "/")
    return any(within(place, name) or within(name, place) for name in names)


def kind_of_miss(truth, ranked, result):
    """The kind of fault of an answer that was not accepted."""
    if result["false_accusation"]:
        return "accuses ZFS wrongly"
    if not ranked:
        return "gives no answer"
    if ranked[0] == {"unknown"}:
        return "says that the evidence does not suffice"
    if truth["class"] == "unknown":
        return "names a cause although none is known"
    if result["family"]:
        return "right family, wrong class"
    if ranked[0] <= NO_BLAME:
        return "wrongly excludes ZFS, or names the wrong innocent cause"
    return "wrong family"


def show(ranked):
    return ", ".join("|".join(sorted(r)) for r in ranked[:3]) or "(no answer)"


def main(argv):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("facts")
    ap.add_argument("answers")
    ap.add_argument("--map", help="JSON file: rule id -> class")
    ap.add_argument("--rules", help="folder of the rules, to judge the places of answers without a cause")
    ap.add_argument("--use", default="diagnose", help="score cases of this use (diagnose, parse, record or all)")
    ap.add_argument("--totals", action="store_true", help="print only totals by family and by kind of miss")
    ap.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    args = ap.parse_args(argv)

    mapping = {}
    if args.map:
        with open(args.map, encoding="utf-8") as f:
            mapping = json.load(f)
    with open(args.facts, encoding="utf-8") as f:
        cases = [json.loads(line) for line in f if line.strip()]
    cases = [c for c in cases if args.use in ("all", c["use"])]

    total, table, failures, missing, strange = defaultdict(int), defaultdict(lambda: defaultdict(int)), [], [], set()
    misses = defaultdict(int)
    for c in cases:
        truth, path = c["truth"], os.path.join(args.answers, c["id"] + ".json")
        ranked, place = [], None
        try:
            with open(path, encoding="utf-8") as f:
                answer = json.load(f)
            ranked, place = ranking(answer, mapping), (answer.get("place") or {}).get("name")
        except FileNotFoundError:
            missing.append(c["id"])
        except (ValueError, AttributeError, TypeError) as e:
            print(f"{path}: {e}", file=sys.stderr)
            missing.append(c["id"])
        strange |= {x for r in ranked for x in r if x not in FAMILY}
        result = judge(truth, ranked)
        for row in (total, table[truth["family"]]):
            row["n"] += 1
            for key in COUNTERS + NAMED:
                row[key] += result[key]
        if args.rules and place and not result["named"] and truth["class"] != "unknown":
            total["placed"] += 1
            total["placed_right"] += is_there(place, places(args.rules, [truth["class"], *truth["accept"]]))
        if not result["accepted"]:
            misses[kind_of_miss(truth, ranked, result)] += 1
            failures.append({"id": c["id"], "class": truth["class"], "accept": truth["accept"], "got": show(ranked),
                             "top3": result["top3"], "family": result["family"], "false_accusation": result["false_accusation"]})

    if args.totals:
        failures, missing = [], [""] * len(missing)
    if args.json:
        print(json.dumps({"total": total, "families": table, "misses": misses, "failures": failures, "missing": missing,
                          "unknown_ids": sorted(strange)}, indent=1))
        return 0

    n = total["n"]
    blameless = sum(c["truth"]["zfs_role"] in BLAMELESS_ROLES for c in cases)
    print(f"cases: {n} (use={args.use}), without an answer file: {len(missing)}")
    for key, label in (("exact", "top-1 exact"), ("accepted", "top-1 accepted"), ("top3", "top-3 accepted"), ("family", "family match")):
        print(f"{label:<18} {total[key]:>4} {100 * total[key] / n if n else 0:>6.1f}%")
    print(f"{'false accusations':<18} {total['false_accusation']:>4} of {blameless} cases in which ZFS is innocent or not on the CPU, or the cause is unknown")
    named, named_right = total["named"], total["named_right"]
    print(f"{'right of the named':<18} {named_right:>4} {100 * named_right / named if named else 0:>6.1f}% of {named} answers that name a cause")
    if args.rules:
        print(f"{'place right':<18} {total['placed_right']:>4} of {total['placed']} answers that name only a place although a cause is known")
    if strange:
        print("ids without a class:", ", ".join(sorted(strange)))
    print(f"\n{'family':<18} {'n':>4} {'exact':>6} {'accept':>6} {'top3':>6} {'family':>6} {'false':>6}")
    for family in sorted(table):
        r = table[family]
        print(f"{family:<18} {r['n']:>4} " + " ".join(f"{r[k]:>6}" for k in COUNTERS))
    print(f"\nfailures: {sum(misses.values())}")
    for kind, count in sorted(misses.items(), key=lambda m: (-m[1], m[0])):
        print(f"  {count:>4}  {kind}")
    for f in failures:
        flags = [w for w, on in (("in top 3", f["top3"]), ("right family", f["family"]), ("FALSE ACCUSATION", f["false_accusation"])) if on]
        want = f["class"] + (f" ({', '.join(f['accept'])})" if f["accept"] else "")
        print(f"  {f['id']:<24} want {want}; got {f['got']}" + (f"  [{'; '.join(flags)}]" if flags else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
