#!/usr/bin/env bash
# Renders known cases, lets "ogive doctor" diagnose each, and scores the answers against the truth.
#
#   bench/doctor/score.sh [--show-check] [--quick] [DIRECTORY]
#
# --quick asks the crate's example "diagnose", one process for all cases, instead of the program,
# and leaves out the score with other weights.
#
# DIRECTORY holds render.py, and facts.jsonl, or learn.jsonl and check.jsonl. Default: $OGIVE_CASES,
# then bench/doctor/cases. The script bench/doctor/cases/score.py scores the answers.
#
# Authors of rules must not see the cases of check.jsonl, so without --show-check only its totals
# are printed.
#
# Then learn.py scores learn.jsonl, and facts.jsonl and burnt.jsonl of DIRECTORY or $OGIVE_CASES. It
# does so with the present weights, with weights counted over these cases, and with each case left
# out of the counts. This needs the crate's example "diagnose", and takes a few minutes.
#
# Environment:
#   OGIVE     the program (default: target/release/ogive, then target/debug/ogive)
#   DIAGNOSE  the example, built from the same tree (default: the one in target/release)
#   USE       which cases: diagnose, parse, record or all (default: diagnose)
#
# Exit code: 77 if there are no cases; 0 if each file passes; 1 otherwise. A file passes if at least
# 90% of first answers are right, all within the first three, and no innocent cause is accused.
set -euo pipefail

here=$(cd "$(dirname "$0")/../.." && pwd)
show_check='' is_quick=''
if [ "${1:-}" = --show-check ]; then show_check=1; shift; fi
if [ "${1:-}" = --quick ]; then is_quick=1; shift; fi
cases=${1:-${OGIVE_CASES:-$here/bench/doctor/cases}}
use=${USE:-diagnose}
sets=()
for name in facts learn check; do
    if [ -s "$cases/$name.jsonl" ]; then sets+=("$name"); fi
done
if [ ${#sets[@]} -eq 0 ]; then
    echo "score.sh: no cases; name a directory with facts.jsonl, or learn.jsonl and check.jsonl," \
        "and render.py, or set OGIVE_CASES" >&2
    exit 77
fi
ogive=${OGIVE:-}
if [ -z "$ogive" ] && [ -z "$is_quick" ]; then
    for candidate in "${CARGO_TARGET_DIR:-$here/target}"/{release,debug}/ogive; do
        if [ -x "$candidate" ]; then ogive=$candidate; break; fi
    done
fi
if [ -z "$ogive" ] && [ -z "$is_quick" ]; then
    echo "score.sh: no program; run \"cargo build --release -p ogive\" or set OGIVE" >&2
    exit 2
fi

diagnose=${DIAGNOSE:-${CARGO_TARGET_DIR:-$here/target}/release/examples/diagnose}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# answer SET: the doctor's answer to each case of one file.
answer() {
    python3 "$cases/render.py" "$cases/$1.jsonl" "$work/$1"
    mkdir "$work/$1.answers"
    local directory id code
    if [ -n "$is_quick" ]; then
        "$diagnose" "$work/$1.answers" "$work/$1"/*/
        return
    fi
    for directory in "$work/$1"/*/; do
        id=$(basename "$directory")
        # Codes 7 to 9 are answers, too: not enough evidence, a cause, and one that is open.
        code=0
        "$ogive" doctor --json "$directory" > "$work/$1.answers/$id.json" || code=$?
        case $code in
            0 | 7 | 8 | 9) ;;
            *)
                echo "score.sh: $id: ogive doctor ended with $code" >&2
                return 1
                ;;
        esac
    done
}

# judge SET: the score of one file; fails below the mark.
judge() {
    local options=()
    if [ "$1" = check ] && [ -z "$show_check" ]; then options=(--totals); fi
    score() {
        python3 "$here/bench/doctor/cases/score.py" "$cases/$1.jsonl" "$work/$1.answers" \
            --map "$here/bench/doctor/classes.json" --rules "$here/crates/doctor/rules" \
            --use "$use" "${@:2}"
    }
    echo "== $1"
    score "$1" ${options[@]+"${options[@]}"}
    score "$1" --json > "$work/$1.json"
    echo "the first three answers:"
    python3 "$here/bench/doctor/answers.py" "$here/bench/doctor/answers/$1.jsonl" "$work/$1.answers"
    python3 - "$work/$1.json" <<'END'
import json, sys
total = json.load(open(sys.argv[1]))["total"]
is_first = total["accepted"] >= 0.9 * total["n"]
good = is_first and total["top3"] == total["n"] and not total["false_accusation"]
print("passed" if good else "FAILED: need 90% at first, 100% within three, no innocent accused")
sys.exit(0 if good else 1)
END
}

failed=0
for set in "${sets[@]}"; do
    answer "$set"
    judge "$set" || failed=1
done

[ -z "$is_quick" ] || exit "$failed"

# Cases from which weights may be counted: learn.jsonl, and known cases outside the tree.
counted=("$here/bench/doctor/cases/learn.jsonl")
for name in facts burnt; do
    for directory in "$cases" "${OGIVE_CASES:-$cases}"; do
        if [ -s "$directory/$name.jsonl" ]; then counted+=("$directory/$name.jsonl"); break; fi
    done
done
echo "== weights as written, counted over cases, and counted with each case left out"
if [ -x "$diagnose" ]; then
    python3 "$here/bench/doctor/learn.py" --program "$diagnose" "${counted[@]}"
else
    echo "not shown: run \"cargo build --release -p ogive-doctor --example diagnose\" first"
fi
exit "$failed"
