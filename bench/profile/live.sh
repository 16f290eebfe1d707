#!/bin/sh
# The cost of live sampling: CPU of ogive itself while it samples the whole machine at 99 Hz. It
# measures two lengths, to separate the cost at the start (symbols, names of running programs) from
# the cost over time.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
root=$(dirname "$(dirname "$here")")
ogive=${OGIVE_BIN:-${CARGO_TARGET_DIR:-$root/target}/release/ogive}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
python3 - "$ogive" "$out" "${ROUNDS:-3}" <<'EOF'
import resource, statistics, subprocess, sys
ogive, out, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
def cost(seconds):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([ogive, "profile", "--for", f"{seconds}s", "--format", "folded", "-o", out],
                   check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
short, long = [], []
for _ in range(rounds):
    short.append(cost(5))
    long.append(cost(35))
steady = [(b - a) / 30 * 100 for a, b in zip(short, long)]
whole = [b / 35 * 100 for b in long]
def spread(values):
    return f"{statistics.median(values):.3f}% ({min(values):.3f} to {max(values):.3f})"
print(f"while sampling: {spread(steady)} of a CPU")
print(f"35 s in all, with start and writing: {spread(whole)} of a CPU")
EOF
