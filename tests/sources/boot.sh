#!/usr/bin/env bash
# Runs one suite in a new guest: a virtual machine with servers of NFS and SMB, and disks of FAT,
# exFAT and NTFS. This machine's kernel needs none of these.
#
# usage: tests/sources/boot.sh SUITE
#
# root.sh builds the guest's root file system once, below ~/.cache/ogive/sources. Guests do not
# change it, so all begin the same. A shared folder brings programs and suites into the guest, and
# the suite's output and exit code out of it. If the guest does not finish, it is killed, and the
# suite has failed.
#
# Environment:
#   OGIVE, OGIVE_TORTURE  the programs (default: the workspace's release build)
#   OGIVE_SEED            the seed of random choices of a suite (default: 1)
#   MIRROR                the mirror of Debian for building the root
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
TARGET="${CARGO_TARGET_DIR:-$HERE/../../target}/release"
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/ogive/sources"
WORK='' GUEST='' IMAGE=''

# skip TEXT...: ends a suite that cannot run here. It does not count as passed.
skip() {
    printf 'SKIPPED: %s\n' "$*"
    exit 77
}

# root_image: sets IMAGE to the folder of the guest's root, and builds it if needed. Only one
# process builds at a time.
root_image() {
    local folder
    folder="$CACHE/$(sha256sum <"$HERE/root.sh" | cut -c 1-16)"
    mkdir -p "$CACHE"
    exec 8>"$CACHE/lock"
    flock 8
    if [ ! -e "$folder/root.img" ]; then
        command -v mmdebstrap >/dev/null || skip 'no mmdebstrap to build a guest with'
        command -v mke2fs >/dev/null || skip 'no mke2fs to build a guest with'
        # Roots of older versions of root.sh are unused.
        find "$CACHE" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
        timeout 1500 sh "$HERE/root.sh" "$folder.new" >"$CACHE/log" 2>&1 8>&- || {
            tail -n 5 "$CACHE/log"
            rm -rf "$folder.new"
            skip "the root of the guest cannot be built from ${MIRROR:-the mirror of Debian}"
        }
        mv "$folder.new" "$folder"
    fi
    exec 8>&-
    IMAGE="$folder"
}

# accelerator: kvm if a kernel starts with it, since /dev/kvm alone proves nothing; otherwise tcg.
accelerator() {
    ulimit -c 0
    if [ -w /dev/kvm ] &&
        timeout 30 "${MACHINE[@]}" -accel kvm -m 256 -append 'console=ttyS0 panic=-1' 2>/dev/null |
        grep -q 'Kernel panic'; then
        echo kvm
    else
        echo tcg,thread=multi
    fi
}

# Kills the guest. If there is no exit code of the suite, prints the end of the guest's console.
finish() {
    local code=$?
    set +e
    if [ -n "$GUEST" ]; then
        kill -KILL "$GUEST" 2>/dev/null
        wait "$GUEST" 2>/dev/null
        if [ ! -s "$WORK/host/code" ]; then
            echo 'FAILED: the guest did not finish; the end of its console:' >&2
            tail -n 30 "$WORK/console" >&2
        fi
    fi
    [ -z "$WORK" ] || rm -rf "$WORK"
    exit "$code"
}

if [ "$#" -ne 1 ] || [ ! -f "$HERE/guest/$1.sh" ]; then
    sed -n '2,5s/^# \?//p' "$0" >&2
    exit 2
fi
[ "$(id -u)" -eq 0 ] || skip 'must run as root'
command -v qemu-system-x86_64 >/dev/null || skip 'no qemu-system-x86_64 on this machine'
root_image
# The guest's console is the standard output of QEMU.
MACHINE=(qemu-system-x86_64 -cpu max -kernel "$IMAGE/vmlinuz" -display none -monitor none -nic none
    -no-reboot -serial stdio)
trap finish EXIT
trap 'exit 143' INT TERM
WORK="$(mktemp -d "${OGIVE_TEST_DIRECTORY:-/var/tmp}/ogive-sources.XXXXXX")"
mkdir -p "$WORK/host/bin"
cp "${OGIVE:-$TARGET/ogive}" "$WORK/host/bin/ogive"
cp "${OGIVE_TORTURE:-$TARGET/ogive-torture}" "$WORK/host/bin/ogive-torture"
cp -r "$HERE/.." "$WORK/host/tests"
printf 'export OGIVE_SEED=%q SUITE=%q\n' "${OGIVE_SEED:-1}" "$1" >"$WORK/host/environment"
: >"$WORK/host/output"
truncate -s 16G "$WORK/disk"
# The disk is discarded with the guest, so no write needs to reach it (cache=unsafe). If this script
# is killed, the kernel kills the guest.
accelerator="$(accelerator </dev/null)"
setpriv --pdeathsig KILL "${MACHINE[@]}" -accel "$accelerator" -smp 2 -m 3G \
    -initrd "$IMAGE/initrd" \
    -append 'root=/dev/vda rw console=ttyS0 init=/sbin/guest-init quiet panic=-1' \
    -drive "file=$IMAGE/root.img,format=raw,if=virtio,snapshot=on" \
    -drive "file=$WORK/disk,format=raw,if=virtio,cache=unsafe,discard=unmap" \
    -virtfs "local,path=$WORK/host,mount_tag=host,security_model=none,multidevs=remap" \
    </dev/null >"$WORK/console" 2>&1 &
GUEST=$!
tail -n +1 -s 0.2 -f --pid="$GUEST" "$WORK/host/output" &
OUTPUT=$!
wait "$GUEST" || true
wait "$OUTPUT" || true
code=1
[ ! -s "$WORK/host/code" ] || code="$(cat "$WORK/host/code")"
(exit "$code")
