#!/usr/bin/env bash
# Every promise of docs/coherence.md, many times with many timings.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite coherence 'each promise of close-to-open and read-your-writes'
need "$OGIVE_TORTURE"

rounds="${OGIVE_COHERENCE_ROUNDS:-60}"

# promises OPTION...: the names of the promises that hold with these options of a mount.
promises() {
    local without=()
    # The kernel does not pass on changes of O_APPEND while the file is open.
    [ -z "${OGIVE_PASSTHROUGH:-}" ] || without+=(append-as-the-flag-is)
    # Through the page cache, a write across the end of a page becomes two requests.
    [[ " $* " == *' --direct-io '* ]] || without+=(append-in-one-piece)
    "$OGIVE_TORTURE" coherence --list | awk '{ print $1 }' |
        grep -vxF "$(printf '%s\n' "${without[@]}")"
}

# Every mode is tried, even if another one failed.
broken=''

# run_promises NAME NAMES_MS MOUNT_OPTION...
run_promises() {
    local name="$1" names_ms="$2" kept
    shift 2
    mapfile -t kept < <(promises "$@")
    mount_view "$WORK/$name-source" "$WORK/$name" "$@"
    say "$name: $*"
    "$OGIVE_TORTURE" coherence --mount "$WORK/$name" --source "$WORK/$name-source" \
        --rounds "$rounds" --names-ms "$names_ms" "${kept[@]}" || broken+="${broken:+, }$name"
    unmount_view "$WORK/$name"
}

run_promises default 1500
run_promises direct 1500 --direct-io
if has_option --metadata-ttl; then
    run_promises unnamed 0 --metadata-ttl 0 --negative-ttl 0
    run_promises small 0 --metadata-ttl 0 --negative-ttl 0 --recordsize 4K --arc-max 4M
fi
[ -z "$broken" ] || fail "promises were broken in: $broken"
passed
