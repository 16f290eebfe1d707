# Runs suites one after the other and counts results. The run.sh of each folder of suites sources
# this file.
# shellcheck shell=bash

passed=0 failed=0 skipped=0 table=''

# run_suites FOLDER SECONDS SUITE...: runs each suite for SECONDS at most. Adds to `passed`,
# `failed`, `skipped` and `table`. Exits with 2 if a suite does not exist.
run_suites() {
    local folder="$1" limit="$2" suite started code result
    shift 2
    for suite in "$@"; do
        suite="${suite%.sh}"
        if [ ! -f "$folder/$suite.sh" ] || [ "$suite" = lib ]; then
            # shellcheck disable=SC2154 # the sourcing script sets `all`
            printf "no suite has the name '%s'; the suites are: %s\n" "$suite" "${all[*]}" >&2
            exit 2
        fi
        started="$SECONDS" code=0
        # Suites do not inherit the runner's lock (9), because a daemon left behind would keep it.
        timeout --kill-after=30 "$limit" bash "$folder/$suite.sh" </dev/null 9>&- || code=$?
        case "$code" in
            0) result=passed passed=$((passed + 1)) ;;
            77) result=skipped skipped=$((skipped + 1)) ;;
            124 | 137) result="failed (over $limit s)" failed=$((failed + 1)) ;;
            *) result="failed ($code)" failed=$((failed + 1)) ;;
        esac
        table+="$(printf '%-16s %7d  %s' "$suite" "$((SECONDS - started))" "$result")"$'\n'
    done
    printf '\n%-16s %7s  %s\n%s' suite seconds result "$table"
}
