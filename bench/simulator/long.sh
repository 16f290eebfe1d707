#!/usr/bin/env bash
# One pass over a long trace with fixed memory: the LRU curve of 100 million requests on one core.
#
#   bench/simulator/long.sh [REQUESTS]
#
# A pipe generates the trace (zipf-like keys over 2^26, big-endian), so it takes no disk. Prints CPU
# seconds and peak memory of `ogive` (or OGIVE=path).
set -euo pipefail
requests=${1:-100000000}
ogive=${OGIVE:-ogive}
perl -e '
    my ($n, $state, $buffer) = (shift, 1, "");
    srand(1);
    while ($n > 0) {
        my $some = $n < 65536 ? $n : 65536;
        # The inverse of a 1/x distribution: half of the requests go to 2^13 keys.
        print pack("N*", map { int(exp(rand() * 18.02)) } 1 .. $some);
        $n -= $some;
    }' "$requests" |
    env TIME='%U s user, %S s system, %M KiB resident' time "$ogive" sim - \
        --format be32 --policy lru --size 65536 --svg /dev/null --threads 1 --quiet
