#!/usr/bin/env bash
# Random operations on the mount. Each answer is compared with that of a mirror on the bare file
# system.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite mirror 'random operations compared with a mirror directory, many seeds'
need "$OGIVE_TORTURE"

operations="${OGIVE_MIRROR_OPERATIONS:-2500}"
seeds="${OGIVE_MIRROR_SEEDS:-3}"
modes="${OGIVE_MIRROR_MODES:-plain direct behind behind-direct threads shared starved}"

# run_mirror NAME TORTURE_OPTION... -- MOUNT_OPTION...
run_mirror() {
    local name="$1" torture=()
    [[ " $modes " == *" $name "* ]] || return 0
    shift
    # With passthrough, writes of root to an open file also clear set-ID bits (docs/caching.md).
    [ -z "${OGIVE_PASSTHROUGH:-}" ] || torture+=(--no-set-id)
    while [ "$1" != -- ]; do
        torture+=("$1")
        shift
    done
    shift
    mount_view "$WORK/$name-source" "$WORK/$name" --allow-other "$@"
    local number seed
    for number in $(seq "$seeds"); do
        seed="$(seed_of "$number")"
        mkdir -p "$WORK/$name/$number" "$WORK/$name-mirror/$number"
        "$OGIVE_TORTURE" mirror --mount "$WORK/$name/$number" \
            --source "$WORK/$name-source/$number" --mirror "$WORK/$name-mirror/$number" \
            --seed "$seed" --ops "$operations" "${torture[@]}" ||
            fail "$name: replay with --seed $seed --ops $operations ${torture[*]}" \
                "on a mount with: $*"
    done
    unmount_view "$WORK/$name"
}

run_mirror plain --
run_mirror direct -- --direct-io
run_mirror behind --behind-permille 30 --
run_mirror behind-direct --behind-permille 30 -- --direct-io
run_mirror threads --threads 4 --
run_mirror shared --threads 4 --shared --
# With 1 MiB and small records, almost every load evicts another record.
run_mirror starved --behind-permille 10 -- --arc-max 1M --recordsize 4K
passed
