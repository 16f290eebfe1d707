#!/usr/bin/env bash
# Each promise of docs/coherence.md, many times with different timings.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite coherence 'each promise of close-to-open and read-your-writes'
need "$OGIVE_TORTURE"

rounds="${OGIVE_COHERENCE_ROUNDS:-60}"

# promises OPTION...: the names of the promises that hold with these mount options.
promises() {
    local without=()
    # The kernel does not pass on a change of O_APPEND on an open file.
    [ -z "${OGIVE_PASSTHROUGH:-}" ] || without+=(append-as-the-flag-is)
    # Without direct I/O, the kernel splits an append at page borders into several requests.
    [[ " $* " == *' --direct-io '* ]] || without+=(append-in-one-piece)
    "$OGIVE_TORTURE" coherence --list | awk '{ print $1 }' |
        grep -vxF "$(printf '%s\n' "${without[@]}")"
}

# A broken promise does not stop the other modes.
broken=''

# run_promises NAME NAMES_MS MOUNT_OPTION...
run_promises() {
    local name="$1" names_ms="$2" names
    shift 2
    mapfile -t names < <(promises "$@")
    mount_view "$WORK/$name-source" "$WORK/$name" "$@"
    say "$name: $*"
    "$OGIVE_TORTURE" coherence --mount "$WORK/$name" --source "$WORK/$name-source" \
        --rounds "$rounds" --names-ms "$names_ms" "${names[@]}" || broken+="${broken:+, }$name"
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
