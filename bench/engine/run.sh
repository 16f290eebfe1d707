#!/usr/bin/env bash
# Compares the engine with other caches: `bench/engine/run.sh [quick|full] [PART...]` (default:
# quick, all).
#
# Builds the program, and writes results.jsonl (a header line, then a row a line) and table.txt.
# They go into bench/results/engine for `full`, into bench/results/quick/engine for `quick`. After a
# full run, page.py writes the tables of README.md. A named part is appended to existing results.
# The parts:
#
#   times    every workload with all candidates interleaved: CPU time of the threads
#   memory   a million entries of one byte
#   counts   instructions by callgrind; they do not depend on other load of the machine
#
# Environment:
#   ENGINE_BIN     measures this program instead of building one
#   BENCH_PREFIX   a command put before each timed piece (two workloads), for machines on which such
#                  pieces take turns
#   BENCH_CHANGED  1: measures a tree that differs from its commit, and marks the results.
#   ROCKSDB_INCLUDE_DIR, ROCKSDB_LIB_DIR
#                  the folders of RocksDB, if it is not the system's (librocksdb-dev)
#
# RocksDB's HyperClockCache is a candidate if its header is found. The times of `full` take some ten
# minutes, the counts as long again.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
mode="${1:-quick}"
case "$mode" in
    quick) results=../results/quick/engine ;;
    full) results=../results/engine ;;
    *) echo 'usage: run.sh [quick|full] [times|memory|counts]...' >&2; exit 2 ;;
esac
shift || true
parts=" ${*:-times memory counts} "
commit=$(../commit.sh)
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
program="${ENGINE_BIN:-${CARGO_TARGET_DIR:-target}/release/ogive-bench-engine}"
[ -n "${ENGINE_BIN:-}" ] || cargo build --release --locked "${features[@]}"
read -ra prefix <<<"${BENCH_PREFIX:-}"
# Ours asks for huge pages for its entries. With this setting the allocator does so for all other
# memory, so that huge pages make no difference between the candidates.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
out="$results/results.jsonl"
named="$#"
[ "$named" -gt 0 ] || : >"$out"
load() { cut -d' ' -f1 /proc/loadavg; }
header() {
    printf '{"header":"%s","commit":"%s","date":"%s","cpu":"%s","processors":%s,"rocksdb":"%s",' \
        "$1" "$commit" "$(date -u '+%F %R')" "$cpu" "$(nproc)" "$rocksdb"
    printf '"plan":"%s","load_before":%s}\n' "$mode" "$(load)"
}
measure() {
    for workload; do
        "$program" table "$mode" "$workload" "$out"
        printf '(until %s, load %s)\n' "$(date -u +%R)" "$(cut -d' ' -f1 /proc/loadavg)"
    done
}
export program mode out
export -f measure

part_times() {
    local at
    header times >>"$out"
    printf 'commit %s, %s\nCPU: %s, %s processors; %s; load before %s\n' \
        "$commit" "$(date -u '+%F %R')" "$cpu" "$(nproc)" "$rocksdb" "$(load)"
    mapfile -t workloads < <("$program" names "$mode")
    for ((at = 0; at < ${#workloads[@]}; at += 2)); do
        "${prefix[@]}" bash -euc 'measure "$@"' measure "${workloads[@]:at:2}"
    done
    printf '{"load_after":%s}\n' "$(load)" >>"$out"
}

part_memory() {
    local name full after
    header memory >>"$out"
    printf '\nmemory of a million 1-byte entries, the allocations of values included\n'
    for name in ogive-arc "${hyperclock[@]}" quick_cache moka mini-moka foyer-memory \
        'lru, one mutex'; do
        read -r full after < <("$program" rss "$name")
        printf '%-24s%8.1f bytes of RSS an entry when full, ' "$name" "$full"
        printf '%6.1f after three times as many more\n' "$after"
        printf '{"memory":"%s","bytes_full":%s,"bytes_after":%s}\n' \
            "$name" "$full" "$after" >>"$out"
    done
}

# count WHAT WORKLOAD FROM TO NAME...: instructions of an operation between two counts.
count() {
    local what="$1" workload="$2" from="$3" to="$4" name operations each
    shift 4
    printf '\ninstructions of %s (callgrind, %s)\n' "$what" "$workload"
    for name; do
        each=$(for operations in "$from" "$to"; do
            valgrind --tool=callgrind --callgrind-out-file=/dev/null \
                "$program" once "$workload" "$name" "$operations" 2>&1 |
                sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
        done | paste -sd' ' | awk -v n=$((to - from)) '{ printf "%.1f", ($2 - $1) / n }')
        printf '%-24s %8.1f\n' "$name" "$each"
        printf '{"instructions":%s,"of":"%s","workload":"%s","candidate":"%s"}\n' \
            "$each" "$what" "$workload" "$name" >>"$out"
    done
}

part_counts() {
    local workload caches=(ogive-arc 'ogive-arc, ARC alone' "${hyperclock[@]}" quick_cache)
    if ! command -v valgrind >/dev/null; then
        echo 'no valgrind: instructions are not counted'
        return
    fi
    header counts >>"$out"
    for workload in 'read only, zipf 0.99' 'read only, zipf 0.99, small'; do
        count 'a hit' "$workload" 0 100000 "${caches[@]}" 'HashMap, read only' 'Vec<Arc>, read only'
    done
    count 'an operation, half of them misses that evict' 'scan and zipf' 200000 300000 \
        "${caches[@]}"
}

{
    for part in times memory counts; do
        [[ "$parts" != *" $part "* ]] || "part_$part"
    done
} | if [ "$named" -gt 0 ]; then tee -a "$results/table.txt"; else tee "$results/table.txt"; fi
