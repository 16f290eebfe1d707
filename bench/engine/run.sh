#!/usr/bin/env bash
# The engine beside other caches: `bench/engine/run.sh [quick|full]` (default: quick).
#
# Builds the program, measures every candidate interleaved, counts instructions with callgrind
# where there is one, and writes bench/results/engine/{table.txt,results.json}.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
mode="${1:-quick}"
case "$mode" in quick | full) ;; *) echo 'usage: run.sh [quick|full]' >&2; exit 2 ;; esac
results=../results/engine
mkdir -p "$results"
cargo build --release --locked
program="${CARGO_TARGET_DIR:-target}/release/ogive-bench-engine"
{
    printf 'CPU: %s, %s processors, load %s\n' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)" \
        "$(cut -d' ' -f1 /proc/loadavg)"
    "$program" "$mode" "$results"
    printf '\nmemory of a million 1-byte entries\n'
    for name in ogive-arc quick_cache moka mini-moka foyer-memory 'lru, one mutex'; do
        "$program" rss "$name"
    done
    if command -v valgrind >/dev/null; then
        printf '\ninstructions of a hit (callgrind, read only, zipf 0.99)\n'
        for name in ogive-arc quick_cache 'HashMap, read only' 'Vec<Arc>, read only'; do
            for count in 0 100000; do
                valgrind --tool=callgrind --callgrind-out-file=/dev/null \
                    "$program" once 'read only, zipf 0.99' "$name" "$count" 2>&1 |
                    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
            done | { read -r none && read -r some && printf '%-24s %8.1f\n' "$name" \
                "$(awk "BEGIN { print ($some - $none) / 100000 }")"; }
        done
    else
        echo 'no valgrind: instructions are not counted'
    fi
} | tee "$results/table.txt"
