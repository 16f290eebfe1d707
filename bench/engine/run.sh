#!/usr/bin/env bash
# The engine beside other caches: `bench/engine/run.sh [quick|full]` (default: quick).
#
# Builds the program, measures every workload with all candidates interleaved, counts instructions
# with callgrind where there is one, and writes table.txt and results.jsonl (a header line, then a
# row a line): `full` into bench/results/engine, `quick` into bench/results/quick/engine.
#
# RocksDB's HyperClockCache is among them where its header is found: the system's
# (librocksdb-dev), or that of ROCKSDB_INCLUDE_DIR and ROCKSDB_LIB_DIR, which then name both.
# BENCH_PREFIX is a command put before each piece that is timed (two workloads, about five minutes),
# for machines on which such pieces take turns. `full` takes some fifteen minutes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
mode="${1:-quick}"
case "$mode" in
    quick) results=../results/quick/engine ;;
    full) results=../results/engine ;;
    *) echo 'usage: run.sh [quick|full]' >&2; exit 2 ;;
esac
mkdir -p "$results"

rocksdb='no RocksDB: HyperClockCache is left out'
features=()
hyperclock=()
for folder in ${ROCKSDB_INCLUDE_DIR:-/usr/include /usr/local/include}; do
    if [ -e "$folder/rocksdb/cache.h" ]; then
        rocksdb="RocksDB $(sed -n 's/^#define ROCKSDB_\(MAJOR\|MINOR\|PATCH\) //p' \
            "$folder/rocksdb/version.h" | paste -sd.)"
        features=(--features hyperclock)
        hyperclock=(HyperClockCache)
        break
    fi
done
cargo build --release --locked "${features[@]}"
program="${CARGO_TARGET_DIR:-target}/release/ogive-bench-engine"
read -ra prefix <<<"${BENCH_PREFIX:-}"

commit=$(git rev-parse --short HEAD)
git diff --quiet HEAD -- . ../../crates/arc || commit+=', changed'
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
printf '{"commit":"%s","date":"%s","cpu":"%s","processors":%s,"rocksdb":"%s","plan":"%s"}\n' \
    "$commit" "$(date -u +%FT%RZ)" "$cpu" "$(nproc)" "$rocksdb" "$mode" >"$results/results.jsonl"
measure() {
    for workload; do
        "$program" table "$mode" "$workload" "$results/results.jsonl"
        printf '(until %s, load %s)\n' "$(date -u +%R)" "$(cut -d' ' -f1 /proc/loadavg)"
    done
}
export program mode results
export -f measure
mapfile -t workloads < <("$program" names "$mode")
{
    printf 'commit %s, %s\nCPU: %s, %s processors; %s\n' \
        "$commit" "$(date -u '+%F %R')" "$cpu" "$(nproc)" "$rocksdb"
    for ((at = 0; at < ${#workloads[@]}; at += 2)); do
        "${prefix[@]}" bash -euc 'measure "$@"' measure "${workloads[@]:at:2}"
    done
    printf '\nmemory of a million 1-byte entries, the allocations of values included\n'
    for name in ogive-arc "${hyperclock[@]}" quick_cache moka mini-moka foyer-memory \
        'lru, one mutex'; do
        "$program" rss "$name"
    done
    if command -v valgrind >/dev/null; then
        # count TITLE WORKLOAD FROM TO NAME...: instructions of an operation between two counts.
        count() {
            local title="$1" workload="$2" from="$3" to="$4" name operations
            shift 4
            printf '\ninstructions of %s (callgrind, %s)\n' "$title" "$workload"
            for name; do
                for operations in "$from" "$to"; do
                    valgrind --tool=callgrind --callgrind-out-file=/dev/null \
                        "$program" once "$workload" "$name" "$operations" 2>&1 |
                        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
                done | { read -r first && read -r second && printf '%-24s %8.1f\n' "$name" \
                    "$(awk "BEGIN { print ($second - $first) / ($to - $from) }")"; }
            done
        }
        caches=(ogive-arc 'ogive-arc, ARC alone' "${hyperclock[@]}" quick_cache)
        for workload in 'read only, zipf 0.99' 'read only, zipf 0.99, small'; do
            count 'a hit' "$workload" 0 100000 "${caches[@]}" 'HashMap, read only' \
                'Vec<Arc>, read only'
        done
        count 'an operation, half of them misses that evict' 'scan and zipf' 200000 400000 \
            "${caches[@]}"
    else
        echo 'no valgrind: instructions are not counted'
    fi
} | tee "$results/table.txt"
