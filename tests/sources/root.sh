#!/bin/sh
# Builds the guest's root file system: Debian with its kernel, and the servers and programs of the
# suites.
#
# usage: root.sh DIRECTORY
#
# DIRECTORY gets root.img, vmlinuz and initrd. The guest gets ogive itself through a shared folder,
# so the root is built only once. Environment: MIRROR, the mirror of Debian (default:
# http://deb.debian.org/debian).
set -eu
directory=$1
packages=linux-image-amd64,initramfs-tools,nfs-kernel-server,nfs-common,rpcbind,samba,cifs-utils
packages=$packages,dosfstools,exfatprogs,ntfs-3g,e2fsprogs,fuse3,attr,acl,python3,strace,procps
packages=$packages,util-linux,kmod,fdisk,iproute2,git,gcc,libc6-dev,make,netbase

mkdir -p "$directory"
cat >"$directory/init" <<'INIT'
#!/bin/sh
# Mounts the host's folder and continues with the script there.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
modprobe -a 9p 9pnet_virtio
mkdir -p /host
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none host /host
exec bash /host/tests/sources/guest/init.bash
INIT
chmod 755 "$directory/init"

# Hooks get the guest's root as an argument, and `directory` from the environment.
export directory
# shellcheck disable=SC2016 # the hook's shell expands it
mmdebstrap --quiet --variant=minbase --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='printf "virtio_pci\nvirtio_blk\next4\n" >>"$1/etc/initramfs-tools/modules"' \
    --customize-hook='chroot "$1" update-initramfs -u' \
    --customize-hook='cp "$directory/init" "$1/sbin/guest-init"' \
    --customize-hook='cp "$1"/boot/vmlinuz-* "$directory/vmlinuz"' \
    --customize-hook='cp "$1"/boot/initrd.img-* "$directory/initrd"' \
    trixie "$directory/root" "${MIRROR:-http://deb.debian.org/debian}"
mke2fs -q -t ext4 -d "$directory/root" "$directory/root.img" 5G
rm -rf "$directory/root" "$directory/init"
