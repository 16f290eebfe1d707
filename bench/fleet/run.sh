#!/usr/bin/env bash
# Measures the doctor over a fleet: makes COUNT captures (1000) and diagnoses them three times.
# Prints seconds of the clock and of the CPU, and the peak memory. OGIVE names the program (default:
# target/release/ogive).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
count="${1:-1000}"
ogive="${OGIVE:-target/release/ogive}"
[ -x "$ogive" ] || {
    echo "run.sh: there is no $ogive; build it: cargo build --release -p ogive" >&2
    exit 1
}
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 bench/fleet/make.py "$work/fleet" "$count"
echo "$count captures, $(du -sm "$work/fleet" | cut -f1) MiB, $(nproc) CPUs"
for run in 1 2 3; do
    python3 - "$ogive" "$work" "$run" <<'PYTHON'
import glob, json, resource, subprocess, sys, time
ogive, work, run = sys.argv[1:]
paths = sorted(glob.glob(f"{work}/fleet/*.ogive"))
begun = time.monotonic()
answer = subprocess.run([ogive, "doctor", "--json", *paths], stdout=subprocess.PIPE)
seconds = time.monotonic() - begun
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if answer.returncode != 8:
    sys.exit(f"run.sh: ogive ended with {answer.returncode} instead of 8")
fleet = json.loads(answer.stdout)
ill = [host for host in fleet["hosts"] if host["cause"] == "encryption-ccm"]
print(f"run {run}: {seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of CPU, "
      f"{used.ru_maxrss / 1024:.0f} MiB at most; {len(fleet['hosts'])} hosts, {len(ill)} ill, "
      f"{len(fleet['unread'])} not read")
PYTHON
done
