#!/usr/bin/env bash
# The doctor on a real OpenZFS, in a virtual machine: `tests/doctor/openzfs/run.sh [SITUATION...]`.
#
#   --list    prints the situations
#
# OGIVE   the program (default: target/release/ogive of this tree)
# IMAGE   a folder with root.img, vmlinuz and initrd (default: target/openzfs of this tree). Missing
#         files are built there, in ten minutes, by mmdebstrap as root
# KEEP    a folder for all answers and captures
#
# In each situation the doctor answers live and from a capture. guest.py carries out each remedy,
# runs the doctor again, and undoes the remedy. It needs qemu-system-x86_64, but no KVM. All
# situations take an hour on two cores. Exit code 77: it cannot run here, and prints the reason.
set -euo pipefail
if [ -n "${OGIVE:-}" ]; then OGIVE="$(realpath "$OGIVE")"; fi
if [ -n "${IMAGE:-}" ]; then IMAGE="$(realpath -m "$IMAGE")"; fi
if [ -n "${KEEP:-}" ]; then KEEP="$(realpath -m "$KEEP")"; fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=../../program.bash
source ../program.bash
cd openzfs
if [ "${1:-}" = --list ]; then PYTHONPATH=.. exec python3 -B guest.py --list; fi
image=${IMAGE:-$PWD/../../../target/openzfs}
for program in qemu-system-x86_64 python3; do
    command -v "$program" >/dev/null || skip "no $program on this machine"
done
if [ ! -e "$image/root.img" ]; then
    command -v mmdebstrap >/dev/null || skip 'no mmdebstrap to build the virtual machine'
    ./image.sh "$image"
fi

work=$(mktemp -d /var/tmp/ogive-openzfs.XXXXXX)
trap 'kill "${guest:-}" "${tail:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/host/out"
cp guest.py situations.py ../command_line.py "$work/host/"
cp "$OGIVE" "$work/host/ogive"
printf 'cp /host/ogive /usr/local/bin/ogive\ncd /host\nexec python3 -B guest.py %s\n' "${*@Q}" \
    >"$work/host/job"
touch "$work/host/log"
# An overlay, so that each run starts with the root as it was built.
qemu-img create -q -f qcow2 -F raw -b "$(realpath "$image/root.img")" "$work/root.qcow2"
truncate -s 24G "$work/pool.img"
truncate -s 8G "$work/more.img"
disk() { printf 'file=%s,format=%s,if=virtio,cache=unsafe,discard=unmap' "$1" "$2"; }
qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 4G \
    -kernel "$image/vmlinuz" -initrd "$image/initrd" \
    -append 'root=/dev/vda rw console=ttyS0 init=/sbin/vm-init mitigations=off quiet panic=10' \
    -drive "$(disk "$work/root.qcow2" qcow2)" -drive "$(disk "$work/pool.img" raw)" \
    -drive "$(disk "$work/more.img" raw)" \
    -virtfs "local,path=$work/host,mount_tag=host,security_model=none,multidevs=remap" \
    -display none -monitor none -nic none -no-reboot -serial "file:$work/serial.log" &
guest=$!
tail -n +1 -f --pid="$guest" "$work/host/log" &
tail=$!
wait "$guest" || true
wait "$tail" || true
if [ -n "${KEEP:-}" ]; then
    mkdir -p "$KEEP"
    cp -r "$work/host/out/." "$work/host/log" "$work/serial.log" "$KEEP/"
fi
[ -e "$work/host/code" ] || { tail -5 "$work/serial.log"; echo 'the guest ended early'; exit 1; }
exit "$(cat "$work/host/code")"
