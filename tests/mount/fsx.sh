#!/usr/bin/env bash
# The file system exerciser: one file, random reads, writes, maps, truncations, holes and copies,
# every read compared with what it must be.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite fsx 'one file exercised with maps, holes and copies, page cache and direct'
need fsx

cat >"$WORK/fsx.toml" <<EOF
flen = 1000000
[opsize]
max = 200000
[weights]
close_open = 2
invalidate = 1
mapread = 10
mapwrite = 10
read = 10
write = 10
truncate = 5
fsync = 1
fdatasync = 1
posix_fallocate = 2
punch_hole = 2
sendfile = 2
posix_fadvise = 1
copy_file_range = 4
EOF
# Small records make many borders.
for mode in default direct small; do
    options=()
    case "$mode" in
        direct) options=(--direct-io) ;;
        small) options=(--recordsize 4K) ;;
    esac
    mount_view "$WORK/$mode-source" "$WORK/$mode" "${options[@]}"
    for seed in 1 "$RANDOM"; do
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
