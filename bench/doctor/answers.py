#!/usr/bin/env python3
"""Scores the first three answers of the doctor: the CPU, its users, and whether ZFS is one.

    answers.py TRUTH.jsonl ANSWERS... [--show]

TRUTH has one object a line (answers/README.md); ANSWERS are folders with one <id>.json a case, as
`ogive doctor --json` or the crate's example `diagnose` writes them. --show lists the misses; do not
use it on the check half of the cases. Python 3 standard library only.
"""
import argparse
import json
import os
import re
import sys

STATES = {"busy": "busy", "busy in part": "some", "waiting": "waiting", "idle": "idle", "not shown": "unknown"}
AMONG = {"yes": "yes", "no": "no", "not shown": "unknown"}


def answer_of(folders, case):
    """The answers to a case; the file of a story or capture may lack that prefix."""
    for folder in folders:
        for name in (case, re.sub(r"^(capture|story)-", "", case)):
            path = os.path.join(folder, name + ".json")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    return json.load(f)
    return None


def judge(truth, answer):
    """For each of the three: (right, the answer)."""
    given = answer["answers"]
    state = STATES[given["cpu"]["state"]]
    waits = given["cpu"]["waits_for"]
    other_wait = state == "waiting" and truth.get("waits") and waits and waits != truth["waits"]
    users = given["users"]["list"]
    first = " ".join(str(users[0].get(key) or "") for key in ("name", "kind", "does")) if users else ""
    # If no user is expected, a named one is no fault by itself.
    user = truth["user"] is None or bool(re.search(truth["user"], first, re.I))
    among = AMONG[given["zfs"]["among"]]
    return {
        "cpu": (state in truth["cpu"] and not other_wait, state),
        "user": (user, first.strip()),
        "zfs": (among in truth["zfs"], among),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth")
    parser.add_argument("answers", nargs="+")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    count, right = 0, {"all three": 0, "cpu": 0, "user": 0, "zfs": 0}
    false, accused, missing = 0, 0, 0
    with open(args.truth, encoding="utf-8") as f:
        cases = [json.loads(line) for line in f if line.strip()]
    for truth in cases:
        answer = answer_of(args.answers, truth["id"])
        if answer is None:
            missing += 1
            continue
        count += 1
        judged = judge(truth, answer)
        for key, (is_right, _) in judged.items():
            right[key] += is_right
        is_all = all(is_right for is_right, _ in judged.values())
        right["all three"] += is_all
        # A wrong answer is worse than none.
        false += any(not is_right and said not in ("unknown", "") for is_right, said in judged.values())
        accused += judged["zfs"][1] == "yes" and "yes" not in truth["zfs"]
        if args.show and not is_all:
            wrong = ", ".join(
                f"{key}: {given or 'none'}, not {truth[key]}" for key, (is_right, given) in judged.items() if not is_right
            )
            print(f"{truth['id']}: {wrong}\n    {answer['sentence']}")
    if not count:
        print("answers.py: no answers to any of the cases", file=sys.stderr)
        return 2
    figures = ", ".join(f"{name} {value} ({100 * value / count:.0f}%)" for name, value in right.items())
    print(f"{count} cases ({missing} without an answer): {figures}; false {false}, ZFS accused wrongly {accused}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
