#!/bin/sh
# Measures the judgement of each policy, and writes it into docs/policy.md. The tables are the
# golden rows of all traces, the engine, synthetic traces, and other constants of the duel.
#
# usage: OGIVE_TRACES=folder-with-golden.csv bench/judgement/run.sh [results folder]
#
# It takes about half an hour of one processor. BENCH_CHANGED=1 measures a tree that differs from
# its commit, and marks the results.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
results=${1:-$here/../results/judgement}
cd "$here"
commit=$(../commit.sh)
mkdir -p "$results"
cargo build --release --quiet
lab=${CARGO_TARGET_DIR:-$here/target}/release/ogive-judgement
judge() { # name of the results, then the arguments
    file=$results/$1.md
    shift
    printf 'Commit %s, %s UTC.\n\n' "$commit" "$(date -u '+%F %R')" > "$file"
    "$lab" "$@" >> "$file"
}
judge table all
peers=lru,arc,2q,lirs,s3-fifo,sieve,w-tinylfu
engines=engine/1,engine/2,engine/8,engine/16,engine/32,engine/64
judge engine "$peers,duel,$engines"
judge synthetic all 0 synth
duels=duel
for constant in change_cost=0.125 change_cost=0.5 shadow_entries=512 shadow_entries=2048 \
    half_life=8 half_life=64 lirs_window=50 lirs_window=200 2q_window=5 2q_window=20; do
    duels=$duels,duel:$constant
done
judge sensitivity "$duels" 5300000
sed -i '/^| trace/,/^$/d' "$results/sensitivity.md"
sh page.sh "$results"
