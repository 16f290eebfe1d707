#!/usr/bin/env bash
# Renders known cases, lets "ogive doctor" diagnose each, and scores the answers against the truth.
#
#   bench/doctor/score.sh [DIRECTORY]     DIRECTORY holds facts.jsonl, render.py and score.py;
#                                         default: $OGIVE_CASES
#
# Environment: OGIVE (the program; default target/release/ogive, then target/debug/ogive),
#              USE  (which cases: diagnose, parse, record or all; default diagnose).
# Exit code: 0 if at least 90% are right at first, all within the first three, and nobody innocent
# is accused; 1 if not; 77 if there are no cases to score.
set -euo pipefail

here=$(cd "$(dirname "$0")/../.." && pwd)
cases=${1:-${OGIVE_CASES:-}}
use=${USE:-diagnose}
if [ -z "$cases" ] || [ ! -f "$cases/facts.jsonl" ]; then
    echo "score.sh: no cases; name a directory with facts.jsonl, render.py and score.py, or set OGIVE_CASES" >&2
    exit 77
fi
ogive=${OGIVE:-}
if [ -z "$ogive" ]; then
    for candidate in "${CARGO_TARGET_DIR:-$here/target}"/{release,debug}/ogive; do
        if [ -x "$candidate" ]; then ogive=$candidate; break; fi
    done
fi
if [ -z "$ogive" ]; then
    echo "score.sh: no program; run \"cargo build --release -p ogive\" or set OGIVE" >&2
    exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$cases/render.py" "$cases/facts.jsonl" "$work/cases"
mkdir "$work/answers"
for directory in "$work"/cases/*/; do
    id=$(basename "$directory")
    # Codes 7 and 8 are answers, too: not enough evidence, and a cause.
    code=0
    "$ogive" doctor --json "$directory" > "$work/answers/$id.json" || code=$?
    case $code in 0 | 7 | 8) ;; *) echo "score.sh: $id: ogive doctor ended with $code" >&2; exit 1 ;; esac
done
score() { python3 "$cases/score.py" "$cases/facts.jsonl" "$work/answers" --map "$here/bench/doctor/classes.json" --use "$use" "$@"; }
score
score --json > "$work/score.json"
python3 - "$work/score.json" <<'END'
import json, sys
total = json.load(open(sys.argv[1]))["total"]
good = total["accepted"] >= 0.9 * total["n"] and total["top3"] == total["n"] and not total["false_accusation"]
print("passed" if good else "FAILED: want 90% at first, 100% within three, nobody innocent accused")
sys.exit(0 if good else 1)
END
