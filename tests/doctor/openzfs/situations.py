"""Situations on OpenZFS, and the right answers to each.

- `make` runs once. `load` runs until it is killed, and begins `warm` seconds before the doctor.
- `kinds` are the right kinds of verdict, `causes` the right first findings ("" is none).
- `says` must be in the whole answer, and `never` must not match its first line.
- `cold` is the ARC's limit in MiB.
- `again` runs after a remedy that only affects new data.
- `user` runs the doctor as an ordinary user. `ask` is the doctor's argument.
- `undo` ends the situation, if destroying its data sets does not suffice.

$P is the pool, /tmp/key a key of 32 bytes, /tmp/text a text that compresses. `cp` and `cat` clone
blocks instead of writing them, so `dd` rewrites files.
"""

from dataclasses import dataclass


@dataclass
class Situation:
    name: str
    kinds: str
    causes: str = ""
    make: str = ""
    load: str = ""
    says: str = ""
    never: str = "Not ZFS"
    warm: int = 10
    cold: int = 256
    again: str = ""
    undo: str = ""
    user: bool = False
    ask: str = ""


NORMAL = "normal cost|cause open"
CALM = "not CPU"
LEGIT = "|workload-legit"


def fio(name, where, how, size="256m"):
    return (
        f"fio --name={name} --directory={where} --size={size} --time_based --runtime=900"
        f" --ioengine=psync --fallocate=none {how}"
    )


def data(dataset, options="", mb=96):
    return (
        f"zfs create {options} $P/{dataset};"
        f" dd if=/dev/urandom of=/$P/{dataset}/f bs=1M count={mb}; zpool sync $P"
    )


def reading(file):
    return f"while :; do cat /$P/{file} > /dev/null; done"


def rewrite(file):
    """Rewrites a file, so that its blocks get the new properties."""
    return (
        f"dd if=/$P/{file} of=/$P/new bs=1M; rm /$P/{file};"
        f" dd if=/$P/new of=/$P/{file} bs=1M; rm /$P/new; zpool sync $P"
    )


SECRET = "-o encryption=aes-256-%s -o keyformat=raw -o keylocation=file:///tmp/key"
MANY = """for i in $(seq 20); do zfs create -o mountpoint=none $P/sn/d$i; done
for i in $(seq 40); do zfs snapshot -r $P/sn@s$i; done"""
FILES = """python3 -c '
import os
for d in range(150):
    os.mkdir(f"/tank/meta/{d}")
    for f in range(300): os.close(os.open(f"/tank/meta/{d}/{f}", os.O_CREAT | os.O_WRONLY))
'"""
HOLES = """python3 -c '
import os
f = os.open("/tank/holes/f", os.O_RDWR | os.O_CREAT)
at = 0
while True:
    os.pwrite(f, b"x" * 4096, at % (64 << 20))
    os.lseek(f, 0, os.SEEK_HOLE)
    at += 1 << 17
'"""

SITUATIONS = [
    Situation("idle", CALM, "|idle-host", warm=20, never="Problem|Not ZFS"),
    Situation(
        "idle-after-snapshots",
        CALM,
        "|idle-host",
        make="zfs create $P/sn; " + MANY,
        warm=100,
        never="Problem|Not ZFS",
    ),
    Situation(
        "cached-reads",
        NORMAL,
        "workload-legit|dbuf-evict-contention",
        make=data("plain", mb=200),
        load=fio("f", "/$P/plain", "--filename=f --rw=randread --bs=16k", "200m"),
        cold=800,
        never="Problem|Not ZFS",
    ),
    Situation(
        "ccm", "cause", "encryption-ccm", data("ccm", SECRET % "ccm"), reading("ccm/f"),
        says="tank/ccm", cold=64,
    ),
    Situation(
        "ccm-as-a-user", "cause|cause open", "encryption-ccm", data("ccm", SECRET % "ccm"),
        reading("ccm/f"), cold=64, user=True,
    ),
    Situation(
        "gcm", NORMAL, "encryption-cost", data("gcm", SECRET % "gcm"), reading("gcm/f"),
        says="tank/gcm", cold=64, never="Problem|Not ZFS",
    ),
    Situation(
        "sha512", NORMAL, "checksum-cost", data("sha512", "-o checksum=sha512"),
        reading("sha512/f"), says="tank/sha512", cold=64, never="Problem|Not ZFS",
        again=rewrite("sha512/f"),
    ),
    Situation(
        "blake3", NORMAL, "checksum-cost", data("blake3", "-o checksum=blake3"),
        reading("blake3/f"), says="tank/blake3", cold=64, never="Problem|Not ZFS",
        again=rewrite("blake3/f"),
    ),
    Situation(
        "gzip-writes", NORMAL, "compression-cost", "zfs create -o compression=gzip-9 $P/gz",
        "while :; do cat /tmp/text > /$P/gz/f; sync /$P/gz/f; done", says="tank/gz",
        never="Problem|Not ZFS",
    ),
    Situation(
        "zstd-writes", NORMAL, "compression-cost", "zfs create -o compression=zstd-12 $P/zstd",
        "while :; do cat /tmp/text > /$P/zstd/f; sync /$P/zstd/f; done", says="tank/zstd",
        never="Problem|Not ZFS",
    ),
    Situation(
        "gzip-reads", NORMAL, "compression-cost|arc-decompress-cost|workload-legit",
        "zfs create -o compression=gzip-9 $P/gzr; for i in 1 2 3; do cp /tmp/text /$P/gzr/$i; done;"
        " zpool sync $P",
        reading("gzr/*"), cold=64, never="Not ZFS",
    ),
    Situation(
        "metadata", "cause", "arc-prune-dnode-limit", "zfs create $P/meta; " + FILES,
        "while :; do find /$P/meta -size +2 > /dev/null; done & "
        "while :; do find /$P/meta -size +1 -newermt 2001-01-01 > /dev/null; done",
        cold=64, warm=15,
    ),
    Situation(
        "dedup", "cause", "dedup-ddt", "zfs create -o dedup=on -o recordsize=4k $P/dd",
        fio("d", "/$P/dd", "--rw=randwrite --bs=4k --numjobs=2 --dedupe_percentage=10", "100m"),
        says="tank/dd", warm=20, again="rm /$P/dd/*",
    ),
    Situation(
        "scrub", "normal cost", "scrub-cost", data("scrubbed", mb=600),
        "until zpool status $P | grep -q paused; do zpool scrub -w $P; done", says="scrub", warm=4, never="Problem|Not ZFS",
        undo="zpool scrub -s $P",
    ),
    Situation(
        "list-of-snapshots", "cause|user process", "admin-command-scaling|monitoring-poll",
        "zfs create $P/sn; " + MANY, "while :; do zfs list -t snapshot > /dev/null; done",
    ),
    Situation(
        "python", "user process|not ZFS", "innocent-user-process", "zfs create $P/idle",
        "exec python3 -c 'while True: pass'", says="python3", never="Problem",
    ),
    Situation(
        "short-of-memory", "kernel|user process|not ZFS|cause open|not CPU",
        "memory-shortage|innocent-kswapd|innocent-user-process|",
        data("plain", mb=600),
        "cat /$P/plain/f > /dev/null; stress-ng --vm 2 --vm-bytes 3200M --vm-keep"
        " --vm-method rand-set -t 900 & " + reading("plain/f"),
        cold=2200, warm=25, never="Problem",
    ),
    Situation(
        "view-of-ogive", "user process|not ZFS|normal cost", "|innocent-user-process|ogive-healthy",
        data("below", mb=64) + "; mkdir -p /v; ogive mount --arc-max 64M /$P/below /v",
        "while :; do cat /v/f > /dev/null; done", never="Problem", undo="ogive unmount /v",
    ),
    Situation(
        "small-writes-into-large-records", "cause", "recordsize-amplification",
        data("big", "-o recordsize=1M", mb=300),
        fio("d", "/$P/big", "--filename=f --rw=randwrite --bs=4k --overwrite=1", "300m"),
        says="tank/big", cold=64, warm=15,
        again=rewrite("big/f"),
    ),
    Situation(
        "volume", NORMAL + "|cause",
        "workload-legit|recordsize-amplification|zvol-taskq-contention|",
        "zfs create -V 1G $P/vol; udevadm settle; mkfs.ext4 -q /dev/zvol/$P/vol; mkdir -p /zv;"
        " mount /dev/zvol/$P/vol /zv",
        fio("z", "/zv", "--rw=randrw --bs=4k --direct=1 --numjobs=2", "200m"),
        warm=20, undo="umount /zv",
    ),
    Situation(
        "plain-reads", NORMAL, "workload-legit", data("plain", mb=400), reading("plain/f"),
        cold=64, never="Problem|Not ZFS",
    ),
    Situation(
        "lz4-writes", NORMAL, "workload-legit|compression-cost",
        "zfs create -o compression=lz4 $P/lz",
        fio("w", "/$P/lz", "--rw=write --bs=128k --buffer_compress_percentage=50", "300m"),
        never="Problem|Not ZFS",
    ),
    Situation(
        "fsync", NORMAL + "|not CPU", "workload-legit|sync-write-latency|", "zfs create $P/sync",
        fio("s", "/$P/sync", "--rw=randwrite --bs=8k --fsync=1 --numjobs=2", "100m"),
        never="Problem|Not ZFS",
    ),
    Situation(
        "sync-always", NORMAL + "|not CPU", "workload-legit|sync-write-latency|",
        "zfs create -o sync=always $P/always",
        "while :; do dd if=/dev/zero of=/$P/always/f bs=4k count=2000 conv=notrunc; done",
        never="Problem|Not ZFS",
    ),
    Situation(
        "raidz-writes", NORMAL, "workload-legit|raidz-parity-cost|",
        "zpool create -f -O mountpoint=/rz rz raidz /dev/vdc1 /dev/vdc2 /dev/vdc3",
        "while :; do dd if=/tmp/noise of=/rz/f bs=1M; done", never="Problem|Not ZFS",
        undo="zpool destroy -f rz",
    ),
    Situation(
        "level-2", NORMAL, "workload-legit|l2arc-header-overload|",
        "zpool add -f $P cache /dev/vdc4; " + data("second", mb=300),
        reading("second/f"), cold=100, never="Problem|Not ZFS", undo="zpool remove $P vdc4",
    ),
    Situation(
        "send-and-receive", NORMAL, "workload-legit|recv-writer-cpu|recv-forced-txg|",
        data("from", mb=200) + "; zfs snapshot $P/from@a",
        "while :; do zfs send $P/from@a | zfs receive -F $P/to; zfs destroy -r $P/to; done",
        never="Problem|Not ZFS",
    ),
    Situation(
        "full-pool", NORMAL + "|cause", "workload-legit|metaslab-fragmentation|write-throttle|",
        "zpool create -f -O mountpoint=/full full /dev/vdc1;"
        " dd if=/dev/urandom of=/full/most bs=1M; rm -f /full/none; truncate -s -60M /full/most",
        fio("x", "/full", "--rw=randwrite --bs=16k", "40m"), never="Not ZFS",
        undo="zpool destroy -f full",
    ),
    Situation(
        "snapshots-destroyed", NORMAL + "|cause",
        "snapshot-destroy-storm|admin-command-scaling|async-destroy-backlog|txg-forced-sync"
        "|txg-sync-loop|workload-legit|",
        "zfs create $P/sn; " + MANY,
        "n=0; while :; do n=$((n+1)); zfs snapshot -r $P/sn@x$n; zfs destroy -r $P/sn@x$n; done",
    ),
    Situation(
        "slow-disk", "not CPU", "slow-device|innocent-hardware|",
        "modprobe dm-delay; s=$(blockdev --getsz /dev/vdc4);"
        ' dmsetup create slow --table "0 $s delay /dev/vdc4 0 100 /dev/vdc4 0 0";'
        " zpool create -f -O mountpoint=/slow slow /dev/mapper/slow;"
        " dd if=/dev/urandom of=/slow/f bs=1M count=400; zpool sync slow",
        fio("r", "/slow", "--filename=f --rw=randread --bs=128k --numjobs=4", "400m"),
        cold=64, never="Problem", undo="zpool destroy -f slow; dmsetup remove slow",
    ),
    Situation(
        "two-pools", NORMAL, "workload-legit|encryption-cost|",
        "zfs create -o compression=gzip-9 $P/quiet; cp /tmp/text /$P/quiet/;"
        " zpool create -f -O mountpoint=/two two /dev/vdc1;"
        " dd if=/dev/urandom of=/two/f bs=1M count=300; zpool sync two",
        "while :; do cat /two/f > /dev/null; done", cold=64, never="Problem|Not ZFS|quiet",
        undo="zpool destroy -f two",
    ),
    Situation(
        "nfs-server", NORMAL, "workload-legit|", data("exported", mb=300)
        + "; modprobe nfsd; rpcbind -w; exportfs -o ro,no_root_squash,insecure,fsid=1"
        " 127.0.0.1:/$P/exported; rpc.nfsd 4; rpc.mountd; mkdir -p /n;"
        " mount -t nfs -o vers=3,nolock,ro 127.0.0.1:/$P/exported /n",
        "while :; do cat /n/f > /dev/null; echo 1 > /proc/sys/vm/drop_caches; done",
        cold=64, never="Problem|Not ZFS",
        undo="umount -f /n; rpc.nfsd 0; pkill rpc.mountd; exportfs -ua",
    ),
    Situation(
        "holes", "cause", "seek-hole-forced-sync|txg-forced-sync|txg-sync-loop",
        "zfs create $P/holes", HOLES,
    ),
    Situation(
        "cache-off", "cause|cause open", "cache-disabled",
        data("off", "-o primarycache=metadata", mb=32),
        reading("off/f"), says="primarycache",
    ),
    Situation(
        "feeding-without-rest", "cause", "bad-tunable",
        "zpool add -f $P cache /dev/vdc4; echo 0 > /sys/module/zfs/parameters/l2arc_feed_secs",
        undo="echo 1 > /sys/module/zfs/parameters/l2arc_feed_secs; zpool remove $P vdc4",
        says="l2arc_feed_secs",
    ),
    Situation(
        "large-files-deleted", NORMAL + "|not CPU",
        "workload-legit|async-destroy-backlog|free-storm-io|",
        "zfs create $P/del",
        "while :; do dd if=/tmp/noise of=/$P/del/f bs=1M; rm /$P/del/f; done",
        never="Problem|Not ZFS",
    ),
]
