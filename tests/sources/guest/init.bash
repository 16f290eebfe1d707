# The first process of the guest, after the host's folder is mounted: runs a suite and powers off.
# shellcheck shell=bash

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# The guest ends with its suite, so the suite needs no namespaces.
export HOME=/root LANG=C.UTF-8 OGIVE_GUEST=1 OGIVE_SUITE_INSIDE=1
export OGIVE=/usr/local/bin/ogive OGIVE_TORTURE=/usr/local/bin/ogive-torture
# shellcheck source=/dev/null
source /host/environment

mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
ip link set lo up
hostname guest
modprobe -a fuse nfsd nfs nfsv4 cifs vfat exfat ntfs3
chmod 666 /dev/fuse
cp /host/bin/* /usr/local/bin/
chmod 755 /usr/local/bin/*
cp -r /host/tests /srv/tests
cd / || exit
bash "/srv/tests/sources/guest/$SUITE.sh" >/host/output 2>&1 </dev/null
echo $? >/host/code
# sysrq powers off at once; a shutdown would wait for mounts with dead servers.
echo o >/proc/sysrq-trigger
sleep 60
