#!/bin/sh
# From perf.data to a flame graph: compares ogive with perf, FlameGraph's scripts and inferno's
# tools, on one recording, in one run, in rounds (see README.md).
set -eu

usage() {
    echo "usage: bench/profile/run.sh [PERF.DATA]"
    echo "  Without a recording this machine is recorded until there are about 500,000 samples"
    echo "  (root)."
    echo "  OGIVE_BIN    the program to measure (default: target/release/ogive)"
    echo "  FLAMEGRAPH   a directory with stackcollapse-perf.pl and flamegraph.pl"
    echo "               (git clone https://github.com/brendangregg/FlameGraph)"
    echo "  ROUNDS       how often each is run (default: 3)"
    echo "  BENCH_WORK   where intermediate files go (default: bench/work/profile)"
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
rounds=${ROUNDS:-3}
ogive=${OGIVE_BIN:-${CARGO_TARGET_DIR:-$root/target}/release/ogive}
perl=${FLAMEGRAPH:-}
mkdir -p "$work"

for tool in perf python3; do
    command -v "$tool" >/dev/null || { echo "bench: $tool is not installed" >&2; exit 1; }
done
[ -x "$ogive" ] || { echo "bench: no $ogive: cargo build --release -p ogive" >&2; exit 1; }

data=${1:-$work/perf.data}
if [ ! -e "$data" ]; then
    [ "$(id -u)" = 0 ] || { echo "bench: recording needs root; or give a perf.data" >&2; exit 1; }
    cpus=$(getconf _NPROCESSORS_ONLN)
    hertz=$((500000 / cpus / 30))
    [ "$hertz" -le 15000 ] || hertz=15000
    # A load: reading, hashing and compressing, in user code and in the kernel.
    (
        end=$(($(date +%s) + 32))
        while [ "$(date +%s)" -lt "$end" ]; do
            find /usr/lib -type f -size -256k 2>/dev/null | head -500 |
                tar cf - -T - 2>/dev/null | gzip -1 | sha256sum
        done >/dev/null
    ) &
    load=$!
    perf record -q -F "$hertz" -a -g -o "$data" -- sleep 30
    wait "$load"
fi

# measure NAME COMMAND: CPU seconds of all its processes, and the largest one's memory.
measure() {
    python3 - "$1" "$2" "$work/figures" <<'EOF'
import resource, subprocess, sys, time
name, command, figures = sys.argv[1:]
began = time.monotonic()
status = subprocess.run(["sh", "-c", command], stderr=subprocess.DEVNULL).returncode
wall = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if status != 0:
    sys.exit(f"bench: {name} failed with {status}: {command}")
cpu = used.ru_utime + used.ru_stime
with open(figures, "a") as out:
    print(name, cpu, wall, used.ru_maxrss / 1024, sep="\t", file=out)
EOF
}

: >"$work/figures"
quoted="'$data'"
svg="$work/out.svg"
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    echo "bench: round $round of $rounds" >&2
    measure ogive-folded "'$ogive' profile $quoted --idle --format folded -o '$work/ogive.folded'"
    measure ogive-svg "'$ogive' profile $quoted --idle -o '$work/ogive.svg'"
    measure ogive-html "'$ogive' profile $quoted --idle -o '$work/ogive.html'"
    if [ -n "$perl" ]; then
        measure perl "perf script -i $quoted |
            '$perl/stackcollapse-perf.pl' | '$perl/flamegraph.pl' >'$svg'"
    fi
    if command -v inferno-collapse-perf >/dev/null; then
        measure inferno "perf script -i $quoted |
            inferno-collapse-perf -n 1 | inferno-flamegraph >'$svg'"
    fi
    measure perf-report "perf report -i $quoted --stdio >'$work/report.txt'"
done

python3 - "$work/figures" "$data" <<'EOF'
import collections, os, statistics, sys
figures, data = sys.argv[1:]
rows = collections.OrderedDict()
for line in open(figures):
    name, cpu, wall, rss = line.rstrip("\n").split("\t")
    rows.setdefault(name, []).append((float(cpu), float(wall), float(rss)))
def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
rounds = len(next(iter(rows.values())))
size = f"{os.path.getsize(data) / 2**20:.0f} MiB of perf.data"
print(f"{size}; median (least to greatest) of {rounds} rounds\n")
print("| what | CPU s | wall s | largest process, MiB | CPU, times ogive's SVG |")
print("|---|---|---|---|---|")
base = [row[0] for row in rows["ogive-svg"]]
for name, values in rows.items():
    cpu, wall, rss = zip(*values)
    ratio = statistics.median(c / b for c, b in zip(cpu, base))
    print(f"| {name} | {spread(cpu)} | {spread(wall)} | {max(rss):.0f} | {ratio:.1f} |")
EOF
