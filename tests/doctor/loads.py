"""The loads: a script for each, and the answers that are right on any machine.

A load is a shell script that runs in an empty directory until it is killed. Its fields:
- `says` must match the first line of the answer, and `never` must not.
- `user` must match the first CPU user, if the load uses most of the busy CPU.
- `cpus` and `memory` are limits of its control group.
- `ask` is the doctor's argument; by default the host. With `output`, it is a tool, and the doctor
  gets its output.
- `needs` lists programs.
- A `steady` load needs little of the machine, and has the same answer every time.
"""

from dataclasses import dataclass, field


@dataclass
class Load:
    name: str
    script: str
    user: str = ""
    says: str = ""
    never: str = "ZFS uses|Problem found"
    cpus: float | None = None
    memory: int | None = None
    ask: str = ""
    needs: list = field(default_factory=list)
    steady: bool = False
    output: bool = False


SPIN = "python3 -c 'while True: pass'"

BUILD = r"""
for n in $(seq 60); do
    echo "#include <stdio.h>" >"$n.c"
    for f in $(seq 400); do
        echo "int f${n}_$f(int a) { int s = 0; for (int i = 0; i < a; i++) s += i * $f;"
        echo "printf(\"%d\", s); return s; }"
    done >>"$n.c"
done
printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n%%.o: %%.c\n\tcc -O2 -c -o $@ $<\n' >Makefile
while :; do make -s -j2; rm -f *.o; done
"""

DATAGRAMS = """
python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
open("port", "w").write(str(s.getsockname()[1]))
while True: s.recv(2000)
' &
until [ -s port ]; do sleep 0.1; done
python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to = ("127.0.0.1", int(open("port").read()))
while True:
    try: s.sendto(b"x" * 1000, to)
    except OSError: pass
'
"""

PAGE_FAULTS = """
python3 -c '
import mmap
while True:
    m = mmap.mmap(-1, 64 << 20)
    for at in range(0, len(m), 4096): m[at] = 1
    m.close()
'
"""

CONTENTION = """
python3 -c '
import threading
def spin():
    while True: pass
for _ in range(16): threading.Thread(target=spin).start()
'
"""

DISK = """
exec fio --name=r --filename=data --size=1g --rw=randread --bs=4k --direct=1 --iodepth=32 \
    --ioengine=libaio --time_based --runtime=600 --output=/dev/null
"""

SMALL_FILES = """
mkdir t
for n in $(seq 2000); do echo $n >t/$n; done
while :; do tar cf - t | cat >/dev/null; done
"""

# Directories for a source and a view of it.
VIEW = "mkdir source between view; head -c 64M /dev/urandom >source/data\n"
TWO_VIEWS = (
    VIEW
    + """
mkdir source2 view2
cp source/data source2
"$OGIVE" mount --direct-io source view
"$OGIVE" mount source2 view2
while :; do dd if=view/data of=/dev/null bs=4k status=none; done
"""
)

STOPPED_SOURCE = (
    VIEW
    + """
bindfs source between
"$OGIVE" mount between view
cat view/data >/dev/null
kill -STOP "$(pgrep -n -x bindfs)"
for n in 1 2 3; do (ls -l between; cat view/data) >/dev/null & done
wait
"""
)

STOPPED_VIEW = (
    VIEW
    + """
"$OGIVE" mount source view
kill -STOP "$(pgrep -n -x ogive)"
for n in 1 2 3; do cat view/data >/dev/null & done
wait
"""
)


def renamed(name):
    """A program with the name of a kernel thread."""
    return f"""python3 -c 'open("/proc/self/comm", "w").write("{name}")\nwhile True: pass'"""


def again(command, before=""):
    return f"{before}\nwhile :; do {command} >/dev/null 2>&1; done"


LOADS = [
    Load("idle", "sleep 600", never="ZFS uses|Problem found|waits", steady=True),
    Load("one-thread", SPIN, user="python3", says="python3", steady=True),
    Load("both-cpus", f"{SPIN} & {SPIN} & wait", user="python3", says="python3", steady=True),
    Load("nice", f"nice -n 19 {SPIN}", user="python3", says="python3"),
    Load(
        "threads",
        again("xz -T4 -1 -c data", "head -c 256M /dev/urandom >data"),
        user="xz",
        says=r"\bxz\b",
        needs=["xz"],
    ),
    Load(
        "short-lived",
        again("gzip -9 -c data", "head -c 200k /dev/urandom >data"),
        user="gzip",
        says="gzip",
        needs=["gzip"],
    ),
    Load(
        "very-short-lived",
        again("/bin/true"),
        user=r"\b(true|sh|bash)\b",
        says=r"\b(true|sh|bash)\b",
    ),
    Load("build", BUILD, user="cc1", says="cc1", needs=["make", "cc"]),
    Load("archive", SMALL_FILES, user="tar|cat", says=r"\b(tar|cat)\b"),
    Load(
        "urandom",
        "dd if=/dev/urandom of=/dev/null bs=1M status=none",
        user=r"\bdd\b",
        says=r"\bdd\b",
    ),
    Load("find", again("find / -xdev -name nothing-of-this-name"), user="find", says="find"),
    Load("pipe", "yes | cat >/dev/null", user=r"\b(yes|cat)\b", says=r"\b(yes|cat)\b"),
    Load("datagrams", DATAGRAMS, user="python3", says="python3|nterrupts"),
    Load("disk-queue", DISK, needs=["fio"]),
    Load("synchronous", again("dd if=/dev/zero of=data bs=4k count=2000 oflag=dsync")),
    Load("page-faults", PAGE_FAULTS, user="python3", says="python3"),
    Load("contention", CONTENTION, user="python3", says="python3"),
    Load(
        "sleepers",
        "for n in $(seq 50); do\n"
        "    python3 -c 'import time\nwhile True: time.sleep(0.001)' &\n"
        "done\nwait",
        user="python3",
        never="ZFS uses|Problem found|waits",
    ),
    Load("throttled", f"{SPIN} & {SPIN} & wait", cpus=0.3, user="python3", says="limit"),
    Load("throttled-one", SPIN, cpus=0.1, says="limit"),
    Load(
        "memory-limit",
        again("cat data", "head -c 400M /dev/zero >data"),
        memory=64 << 20,
        user=r"\bcat\b|kswapd",
        says="limit",
    ),
    Load(
        "kernel-thread-name",
        renamed("kworker/0:1"),
        user="kworker|python3",
        never="ZFS uses|Problem found|kernel",
        steady=True,
    ),
    Load("zfs-thread-name", renamed("arc_prune"), user="arc_prune|python3"),
    Load(
        "dying-parents",
        again("sh -c 'for n in 1 2 3 4 5 6 7 8 9; do gzip -c </proc/kallsyms; done'"),
        user=r"gzip|\bsh\b",
        says=r"gzip|\bsh\b",
    ),
    Load(
        "view-hits",
        VIEW + '"$OGIVE" mount --direct-io source view\n' + again("dd if=view/data bs=4k"),
        user=r"ogive|\bdd\b",
        says=r"ogive|\bdd\b",
    ),
    Load("two-views", TWO_VIEWS, ask="view2", never="ZFS uses|Problem found|ogive uses"),
    Load("two-views-busy", TWO_VIEWS, ask="view", says="ogive|view|dd"),
    Load(
        "stopped-source",
        STOPPED_SOURCE,
        says="stands still|stopped|waits",
        never="ZFS uses|Problem found|nothing is wrong",
        needs=["bindfs"],
    ),
    Load("stopped-view", STOPPED_VIEW, ask="view", says="stopped|does not answer|stands still"),
    Load("vmstat-alone", SPIN, output=True, ask="vmstat 1 5", says="CPU", steady=True),
    Load(
        "top-alone",
        SPIN,
        output=True,
        ask="top -b -d 2 -n 2 -w 200",
        user="python3",
        says="python3",
    ),
    Load("ps-alone", SPIN, output=True, ask="ps aux", user="python3"),
    Load(
        "perf-default",
        SPIN,
        output=True,
        ask="perf",
        user="python3",
        says="python3",
        needs=["perf"],
    ),
    Load(
        "perf-dwarf",
        again("gzip -c data", "head -c 20M /dev/urandom >data"),
        output=True,
        ask="perf-dwarf",
        user="gzip",
        says="gzip",
        needs=["perf"],
    ),
]
