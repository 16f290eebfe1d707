#!/bin/sh
# A recording as large as a disk: `ogive profile` over gigabytes of perf.data, with its memory, its
# progress, and the effect of Ctrl-C (see README.md).
set -eu

usage() {
    echo "usage: bench/profile/huge.sh [PERF.DATA]"
    echo "  The records of PERF.DATA (default: what run.sh has recorded) are repeated, each time"
    echo "  later than before, until there are SIZE_GIB of them."
    echo "  OGIVE_BIN    the program to measure (default: target/release/ogive)"
    echo "  SIZE_GIB     how large the recording is to be (default: 10)"
    echo "  MEMORY_MIB   how much memory is allowed (default: 512)"
    echo "  BENCH_WORK   where the recording goes and is removed again (default:"
    echo "               bench/work/profile)"
}

case ${1:-} in
-h | --help)
    usage
    exit 0
    ;;
esac

here=$(cd "$(dirname "$0")" && pwd -P)
root=$(dirname "$(dirname "$here")")
work=${BENCH_WORK:-$root/bench/work/profile}
ogive=${OGIVE_BIN:-${CARGO_TARGET_DIR:-$root/target}/release/ogive}
mkdir -p "$work"
data=${1:-$work/perf.data}
[ -x "$ogive" ] || { echo "bench: no $ogive: cargo build --release -p ogive" >&2; exit 1; }
[ -e "$data" ] || { echo "bench: no $data: give a recording, or make one with run.sh" >&2; exit 1; }
huge="$work/huge.perf.data"
trap 'rm -f "$huge" "$work/huge.svg"' EXIT
trap 'exit 130' INT TERM

python3 - "$ogive" "$data" "$huge" "${SIZE_GIB:-10}" "${MEMORY_MIB:-512}" \
    "$work/huge.svg" <<'PYTHON'
import os, pty, re, resource, select, signal, struct, subprocess, sys, time

ogive, data, huge, gib, memory_mib, out = sys.argv[1:]

# Bits of sample_type, in the order in which a sample has the fields (perf_event_open(2)).
IP, TID, TIME, ADDR, ID, STREAM, CPU, IDENTIFIER = 0, 1, 2, 3, 6, 9, 7, 16
SAMPLE, FIRST_OF_PERF = 9, 64


def time_places(records, sample_type):
    """Where the times of records stand, the first and the last of them."""
    has = lambda bit: sample_type >> bit & 1
    in_sample = 8 + 8 * (has(IDENTIFIER) + has(IP) + has(TID))
    from_end = 8 * (has(TIME) + has(ID) + has(STREAM) + has(CPU) + has(IDENTIFIER))
    places, at = [], 0
    while at + 8 <= len(records):
        kind, _, size = struct.unpack_from("<IHH", records, at)
        if size < 8 or at + size > len(records):
            break
        if kind < FIRST_OF_PERF:
            places.append(at + (in_sample if kind == SAMPLE else size - from_end))
        at += size
    return places, at


def enlarge(limit):
    """Writes the recording with its records repeated; how often, and the bytes of all."""
    whole = open(data, "rb").read()
    if whole[:8] != b"PERFILE2":
        sys.exit(f"bench: {data} is no perf.data file of this machine's byte order")
    attr_size, attrs, _, start, size = struct.unpack_from("<QQQQQ", whole, 16)
    sample_type = struct.unpack_from("<Q", whole, attrs + 24)[0]
    if not sample_type >> TIME & 1:
        sys.exit("bench: the recording has no times")
    records = bytearray(whole[start:start + size])
    places, size_used = time_places(records, sample_type)
    del records[size_used:]
    times = [struct.unpack_from("<Q", records, place)[0] for place in places]
    real = [time for time in times if time]
    span = max(real) - min(real) + 1_000_000
    count = max(1, -(-limit // len(records)))
    features = bin(int.from_bytes(whole[72:104], "little")).count("1")
    table, added = start + size, len(records) * count - size
    with open(huge, "wb") as file:
        head = bytearray(whole[:start])
        struct.pack_into("<Q", head, 48, len(records) * count)
        file.write(head)
        for copy in range(count):
            for place, time_ns in zip(places, times):
                if time_ns:
                    struct.pack_into("<Q", records, place, time_ns + copy * span)
            file.write(records)
        for number in range(features):
            offset, length = struct.unpack_from("<QQ", whole, table + 16 * number)
            file.write(struct.pack("<QQ", offset + added, length))
        file.write(whole[table + 16 * features:])
    return count, os.path.getsize(huge)


def cost(path):
    """CPU seconds, wall seconds, and MiB of memory at most, of drawing a recording."""
    began = time.monotonic()
    command = [ogive, "profile", path, "--idle", "-o", out]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"bench: ogive profile {path} ended with {status}")
    return used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss / 1024


def weight(path):
    """The weight of all samples, as the summary gives it."""
    import json
    command = [ogive, "profile", path, "--idle", "--json"]
    done = subprocess.run(command, capture_output=True, check=True)
    return json.loads(done.stdout)["weight"]


def interrupted():
    """Sends Ctrl-C on a terminal; returns the shown percents, exit code and seconds to exit."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(ogive, [ogive, "profile", huge, "--idle", "-o", out])
    said, sent, began = b"", None, time.monotonic()
    while time.monotonic() - began < 120:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        if ready:
            try:
                part = os.read(terminal, 4096)
            except OSError:
                break
            if not part:
                break
            said += part
        if sent is None and len(re.findall(rb"(\d+)%", said)) >= 5:
            sent = time.monotonic()
            os.write(terminal, b"\x03")
    _, status, _ = os.wait4(pid, 0)
    shown = sorted({int(percent) for percent in re.findall(rb"(\d+)%", said)})
    after = time.monotonic() - sent if sent else float("nan")
    return shown, os.waitstatus_to_exitcode(status), after


print("bench: making the recording", file=sys.stderr)
copies, size = enlarge(int(float(gib) * 2**30))
print("bench: reading it", file=sys.stderr)
rows = [("once", os.path.getsize(data), cost(data)), (f"{copies} times", size, cost(huge))]
print("| records | MiB | CPU s | wall s | memory, MiB | MiB a second |\n|---|---|---|---|---|---|")
for name, bytes_, (cpu, wall, memory) in rows:
    mib = bytes_ / 2**20
    print(f"| {name} | {mib:.0f} | {cpu:.2f} | {wall:.2f} | {memory:.0f} | {mib / wall:.0f} |")
shown, code, after = interrupted()
percents = ", ".join(f"{percent}%" for percent in shown)
print(f"\non a terminal: {percents}; Ctrl-C ended it after {after:.2f} s with {code}")
failed = []
if rows[1][2][2] > float(memory_mib):
    failed.append(f"it took {rows[1][2][2]:.0f} MiB, more than {memory_mib}")
if len(shown) < 2:
    failed.append("no progress was shown")
if code not in (-signal.SIGINT, 128 + signal.SIGINT):
    failed.append(f"Ctrl-C did not end it: {code}")
if os.environ.get("CHECK_WEIGHT", "1") == "1" and weight(huge) != copies * weight(data):
    failed.append("weight was lost")
for what in failed:
    print("bench: FAILED: " + what)
sys.exit(1 if failed else 0)
PYTHON
