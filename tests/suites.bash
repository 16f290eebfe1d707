# Runs suites one after the other and keeps count. Sourced by the run.sh of a folder of suites.
# shellcheck shell=bash

passed=0 failed=0 skipped=0 table=''

# run_suites FOLDER SECONDS SUITE...: each suite for so many seconds at most. Adds to `passed`,
# `failed`, `skipped` and `table`. Exit code 2 for a suite that is not in the folder.
run_suites() {
    local folder="$1" limit="$2" suite started code result
    shift 2
    for suite in "$@"; do
        suite="${suite%.sh}"
        if [ ! -f "$folder/$suite.sh" ] || [ "$suite" = lib ]; then
            # shellcheck disable=SC2154 # `all` is the list of whoever sources this
            printf "no suite is called '%s'; there are: %s\n" "$suite" "${all[*]}" >&2
            exit 2
        fi
        started="$SECONDS" code=0
        # A leftover daemon must not keep the lock of the runner (9).
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
