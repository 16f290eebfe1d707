#!/usr/bin/env bash
# Runs one suite in a new guest: a virtual machine with servers of NFS and SMB and disks of FAT,
# exFAT and NTFS, which this machine's kernel need not know.
#
# usage: tests/sources/boot.sh SUITE
#
# root.sh builds the root of the guest once, below ~/.cache/ogive/sources. Nothing is written to it,
# so every guest starts alike. It shares one folder with this machine, for programs and suites, their
# output and exit code. A guest that does not end in time is killed, and the suite has failed.
#
# Environment:
#   OGIVE, OGIVE_TORTURE  the programs (default: the workspace's release build)
#   OGIVE_SEED            the seed of the random decisions of a suite (default: 1)
#   MIRROR                the mirror of Debian that the root is built from
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
TARGET="${CARGO_TARGET_DIR:-$HERE/../../target}/release"
KEPT="${XDG_CACHE_HOME:-$HOME/.cache}/ogive/sources"
WORK='' GUEST='' IMAGE=''

# skip TEXT...: the suite cannot run here; never counted as passed.
skip() {
    printf 'SKIPPED: %s\n' "$*"
    exit 77
}

# root_image: the folder of the guest's root, which is built unless it is there. One process builds.
root_image() {
    local folder
    folder="$KEPT/$(sha256sum <"$HERE/root.sh" | cut -c 1-16)"
    mkdir -p "$KEPT"
    exec 8>"$KEPT/lock"
    flock 8
    if [ ! -e "$folder/root.img" ]; then
        command -v mmdebstrap >/dev/null || skip 'no mmdebstrap to build a guest with'
        command -v mke2fs >/dev/null || skip 'no mke2fs to build a guest with'
        # Leftovers of other scripts are unused.
        find "$KEPT" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
        timeout 1500 sh "$HERE/root.sh" "$folder.new" >"$KEPT/log" 2>&1 8>&- || {
            tail -n 5 "$KEPT/log"
            rm -rf "$folder.new"
            skip "the root of the guest cannot be built from ${MIRROR:-the mirror of Debian}"
        }
        mv "$folder.new" "$folder"
    fi
    exec 8>&-
    IMAGE="$folder"
}

# accelerator: KVM, if a kernel starts under it. Its device alone proves nothing.
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

# Ends the guest. If the result of the suite is missing, prints the end of its console.
finish() {
    local code=$?
    set +e
    if [ -n "$GUEST" ]; then
        kill -KILL "$GUEST" 2>/dev/null
        wait "$GUEST" 2>/dev/null
        if [ ! -s "$WORK/host/code" ]; then
            echo 'FAILED: the guest did not come to its end; the end of its console:' >&2
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
# Its console is its standard output.
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
: >"$WORK/host/said"
truncate -s 16G "$WORK/disk"
# A disk ends with its guest, so nothing waits for its writes. The guest ends with this script, also
# after a kill.
accelerator="$(accelerator </dev/null)"
setpriv --pdeathsig KILL "${MACHINE[@]}" -accel "$accelerator" -smp 2 -m 3G \
    -initrd "$IMAGE/initrd" \
    -append 'root=/dev/vda rw console=ttyS0 init=/sbin/guest-init quiet panic=-1' \
    -drive "file=$IMAGE/root.img,format=raw,if=virtio,snapshot=on" \
    -drive "file=$WORK/disk,format=raw,if=virtio,cache=unsafe,discard=unmap" \
    -virtfs "local,path=$WORK/host,mount_tag=host,security_model=none,multidevs=remap" \
    </dev/null >"$WORK/console" 2>&1 &
GUEST=$!
tail -n +1 -s 0.2 -f --pid="$GUEST" "$WORK/host/said" &
SAYING=$!
wait "$GUEST" || true
wait "$SAYING" || true
code=1
[ ! -s "$WORK/host/code" ] || code="$(cat "$WORK/host/code")"
(exit "$code")
