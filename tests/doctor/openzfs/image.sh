#!/usr/bin/env bash
# Builds the virtual machine's root: `image.sh DIR` writes DIR/root.img, DIR/vmlinuz and DIR/initrd.
#
# It is a Debian with its stock kernel, and dkms builds OpenZFS for it. It takes ten minutes on two
# cores, mostly for the module. SUITE is trixie (OpenZFS 2.3) or bookworm (2.1); MIRROR is a mirror
# of Debian.
#
# shellcheck disable=SC2016 # the hooks expand $1
set -euo pipefail
dir=$(realpath -m "${1:?a directory}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
packages=linux-image-amd64,linux-headers-amd64,initramfs-tools,zfs-dkms,zfsutils-linux,fio
packages+=,stress-ng,procps,python3,fuse3,e2fsprogs,udev,util-linux,kmod,iproute2,psmisc,fdisk
packages+=,dmsetup,nfs-kernel-server,nfs-common
kernel='k=$(ls "$1/lib/modules" | tail -1)'
mkdir -p "$dir"
mmdebstrap --variant=minbase --components=main,contrib --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --customize-hook="$kernel; chroot \"\$1\" dkms autoinstall -k \"\$k\"; \
        find \"\$1/lib/modules\" -name 'zfs.ko*' | grep ." \
    --customize-hook='printf "9p\n9pnet_virtio\nvirtio_pci\nvirtio_blk\next4\n" \
        >>"$1/etc/initramfs-tools/modules"' \
    --customize-hook="$kernel; chroot \"\$1\" depmod \"\$k\"; \
        chroot \"\$1\" update-initramfs -u -k \"\$k\"" \
    --customize-hook="install -m 755 $here/init \"\$1/sbin/vm-init\"" \
    --customize-hook="cp \"\$1\"/boot/vmlinuz-* $dir/vmlinuz" \
    --customize-hook="cp \"\$1\"/boot/initrd.img-* $dir/initrd" \
    "${SUITE:-trixie}" "$dir/root.tar" ${MIRROR:+"$MIRROR"}
rm -rf "$dir/root"
mkdir "$dir/root"
tar -C "$dir/root" -xf "$dir/root.tar" --exclude='./dev/*' --exclude='./var/lib/dkms/zfs/*/build'
rm -f "$dir/root.img"
mke2fs -q -t ext4 -d "$dir/root" "$dir/root.img" 6G
rm -rf "$dir/root" "$dir/root.tar"
