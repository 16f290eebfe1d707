#!/usr/bin/env bash
# Rebuilds crates/sim/tests/peer_counts.csv: the miss ratios that libCacheSim's `cachesim`
# prints for traces we hold, which `cargo test -p ogive-sim --test peers` holds ours to.
#
#   bench/simulator/check.sh TRACES [OUTPUT]
#
# TRACES is a directory with lirs/*.trace.gz and arc/OLTP.lis.zst. `cachesim` must be on PATH
# (github.com/1a1a11a/libCacheSim: cmake, make cachesim). Every key counts as one.
set -euo pipefail

traces=${1:?"usage: check.sh TRACES [OUTPUT]"}
output=$(realpath "${2:-$(dirname "$0")/../../crates/sim/tests/peer_counts.csv}")
traces=$(realpath "$traces")
command -v cachesim >/dev/null || { echo "cachesim is not on PATH" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

keys() { # TRACE: one key a line
    case $1 in
    arc-*) zstdcat "$traces/arc/${1#arc-}.lis.zst" |
        awk '{ for (key = $1; key < $1 + $2; key++) print key }' ;;
    lirs-*) zcat "$traces/lirs/${1#lirs-}.trace.gz" | grep -v '\*' | awk 'NF { print $1 }' ;;
    esac
}

# Algorithm of cachesim, its parameters (its own defaults, spelled out), our name.
algorithms=(
    "lru - lru" "fifo - fifo" "clock n-bit-counter=1 clock" "sieve - sieve" "arc - arc"
    "twoq Ain-size-ratio=0.25,Aout-size-ratio=0.5 2q"
    "s3fifo fifo-size-ratio=0.10,ghost-size-ratio=0.90,move-to-main-threshold=2 s3-fifo"
    "lirs - lirs" "wtinylfu main-cache=SLRU,window-size=0.01 w-tinylfu-fixed"
)

cd "$work"
echo "trace,entries,policy,requests,miss_ratio,parameters" >counts.csv
for trace in lirs-{2_pools,backf,cpp,cs,gli,loop,multi1,multi2,multi3,ps,scan,sprite,zigzag} arc-OLTP; do
    keys "$trace" >"$trace.txt"
    sizes=$(awk -F, -v trace="$trace" '$1 == trace { print $2 }' "$traces/golden.csv" | sort -nu)
    for row in "${algorithms[@]}"; do
        read -r algorithm parameters name <<<"$row"
        options=()
        [ "$parameters" = - ] || options=(-e "$parameters")
        for size in $sizes; do
            # It crashes or refuses at some tiny sizes; such a cell is left out.
            line=$(timeout 120 cachesim "$trace.txt" txt "$algorithm" "$size" --ignore-obj-size=1 \
                "${options[@]}" 2>/dev/null | grep -a 'miss ratio' | tail -1) || continue
            requests=$(sed -E 's/.* ([0-9]+) req.*/\1/' <<<"$line")
            ratio=$(sed -E 's/.*[^e] miss ratio ([0-9.]+).*/\1/' <<<"$line")
            echo "$trace,$size,$name,$requests,$ratio,${parameters//,/;}" >>counts.csv
        done
    done
done
cp counts.csv "$output"
wc -l "$output"
