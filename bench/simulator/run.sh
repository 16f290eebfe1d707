#!/usr/bin/env bash
# Requests a second of ogive sim and of libCacheSim's cachesim, on the same traces, in one run.
#
#   bench/simulator/run.sh TRACES [REPETITIONS]
#
# TRACES is a directory with arc/OLTP.lis.zst and arc/P6.lis.zst. Needs `cachesim` and `ogive` on
# PATH (or OGIVE=path). Each process runs one policy and one size in one thread; every key has size
# one. The time includes reading the trace: binary keys for ogive, oracleGeneral for cachesim, which
# is its fastest format. Time is the processor time of the process, so other load does not count.
# The table shows the median of the repetitions, with the least and the greatest.
set -euo pipefail

traces=$(realpath "${1:?"usage: run.sh TRACES [REPETITIONS]"}")
repetitions=${2:-3}
ogive=${OGIVE:-ogive}
command -v cachesim >/dev/null || { echo "cachesim is not on PATH" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Both formats from the same keys; perl, because it packs.
prepare() { # NAME FILE
    zstdcat "$2" | perl -ne '
        BEGIN {
            open BE, ">", "'"$1"'.be64"; open OG, ">", "'"$1"'.oracleGeneral";
            binmode BE; binmode OG;
        }
        my ($first, $count) = split;
        for my $key ($first .. $first + $count - 1) {
            print BE pack("Q>", $key); print OG pack("L<Q<L<q<", 1, $key, 1, -1);
        }'
}

cpu_seconds() { # COMMAND...: user and system time of it
    local TIMEFORMAT='%U %S'
    { time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}

measure() { # REQUESTS COMMAND...: million requests a second: middle (least-most)
    local requests=$1; shift
    for _ in $(seq "$repetitions"); do cpu_seconds "$@"; done | sort -n |
        awk -v n="$requests" '{ s[NR] = ($1 > 0 ? n / $1 / 1e6 : 0) }
            END { printf "%.2f (%.2f-%.2f)", s[int((NR + 1) / 2)], s[NR], s[1] }'
}

echo "| trace | entries | policy | ogive sim, M requests/s | cachesim, M requests/s |"
echo "|---|--:|---|--:|--:|"
for row in "OLTP 5000" "P6 131072"; do
    read -r trace entries <<<"$row"
    prepare "$trace" "$traces/arc/$trace.lis.zst"
    requests=$(($(stat -c %s "$trace.be64") / 8))
    for pair in "lru lru" "fifo fifo" "clock clock" "2q twoq" "lirs lirs" "arc arc" \
        "s3-fifo s3fifo" "sieve sieve" "w-tinylfu-fixed wtinylfu"; do
        read -r ours theirs <<<"$pair"
        a=$(measure "$requests" "$ogive" sim "$trace.be64" --policy "$ours" --size "$entries" \
            --threads 1 --quiet)
        b=$(measure "$requests" timeout 300 cachesim "$trace.oracleGeneral" oracleGeneral \
            "$theirs" "$entries" --ignore-obj-size=1 --num-thread=1)
        echo "| $trace | $entries | $ours | $a | $b |"
    done
done
