#!/usr/bin/env bash
# The file system exerciser: random reads, writes, maps, truncations, holes and copies of one file.
# It compares every read with the expected bytes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite fsx 'one file exercised with maps, holes and copies, page cache and direct'
need fsx

fsx_configuration 2 2
for mode in default direct small; do
    options=()
    case "$mode" in
        direct) options=(--direct-io) ;;
        small) options=(--recordsize 4K) ;;
    esac
    mount_view "$WORK/$mode-source" "$WORK/$mode" "${options[@]}"
    for seed in "$(seed_of 1)" "$(seed_of 2)"; do
        mkdir -p "$WORK/artifacts"
        fsx -q -f "$WORK/fsx.toml" -N "${OGIVE_FSX_OPERATIONS:-4000}" -S "$seed" \
            -P "$WORK/artifacts" "$WORK/$mode/file" >"$WORK/fsx.log" 2>&1 || {
            tail -n 30 "$WORK/fsx.log"
            fail "fsx $mode, seed $seed"
        }
        cmp "$WORK/$mode/file" "$WORK/$mode-source/file" || fail "$mode: source differs"
        say "$mode, seed $seed: ${OGIVE_FSX_OPERATIONS:-4000} operations"
    done
    unmount_view "$WORK/$mode"
done
passed
