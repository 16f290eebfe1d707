#!/bin/sh
# Prints the commit of this tree, which every run writes next to its figures.
#
# It fails if the tree differs from its commit, because such figures cannot be repeated. Results
# themselves may differ. With BENCH_CHANGED=1 it prints the commit with the mark "changed" instead.
set -eu
cd "$(dirname "$0")/.."
commit=$(git rev-parse --short HEAD 2>/dev/null) || commit=unknown
if [ "$commit" != unknown ] && [ -z "$(git status --porcelain -- . ':!bench/results')" ]; then
    echo "$commit"
elif [ "${BENCH_CHANGED:-}" = 1 ]; then
    echo "$commit changed"
else
    echo "bench: the tree differs from commit $commit: commit first," \
        "or set BENCH_CHANGED=1 to mark the results as changed" >&2
    exit 1
fi
