#!/usr/bin/env bash
# fio writes blocks with checksums at random offsets and verifies them, by every kind of I/O.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite fio 'random writes with checksums, verified; buffered, direct and mapped'
need fio

size="${OGIVE_FIO_SIZE:-24m}"

# run_fio MODE NAME FIO_OPTION...
run_fio() {
    local mode="$1" name="$2"
    shift 2
    # Two jobs, a file each; blocks cross record borders.
    (cd "$WORK" && fio --name="$name" --directory="$WORK/$mode" --rw=randwrite --size="$size" \
        --numjobs=2 --verify=crc32c --verify_fatal=1 --do_verify=1 --randseed=7 --group_reporting \
        "$@" >"$WORK/fio.log" 2>&1) || {
        tail -n 30 "$WORK/fio.log"
        fail "fio $mode $name"
    }
    # A new open in the mount and the file in the source must have the same bytes.
    local file
    for file in "$WORK/$mode/$name".*; do
        cmp "$file" "$WORK/$mode-source/${file##*/}" || fail "fio $mode $name: the source differs"
    done
    say "$mode $name"
}

for mode in default direct; do
    options=()
    [ "$mode" = default ] || options=(--direct-io)
    mount_view "$WORK/$mode-source" "$WORK/$mode" "${options[@]}"
    run_fio "$mode" buffered --ioengine=psync --bs=4k-200k --bs_unaligned=1
    run_fio "$mode" small --ioengine=psync --bs=4k
    run_fio "$mode" uncached --ioengine=libaio --iodepth=8 --direct=1 --bs=16k
    run_fio "$mode" mapped --ioengine=mmap --bs=8k
    unmount_view "$WORK/$mode"
done
passed
