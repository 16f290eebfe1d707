#!/usr/bin/env bash
# The doctor on this host, under known loads: `sudo tests/doctor/run.sh [LOAD...]`.
#
#   --list      prints the loads
#   --steady    only loads that need little of the machine; the check runs these
#   --way WAY   live, user, capture or all (default: live). As root, as an ordinary user, or from a
#               capture
#   --for N     seconds of each measurement (default: 5)
#   --keep DIR  keeps all answers in a folder
#
# OGIVE     the program (default: target/release/ogive of this tree)
#
# Each load runs in its own control group. The answers are compared with the CPU time of the group
# and of the machine in the same seconds. So other load cannot make an answer wrong. Exit code 77:
# it cannot run here, and prints the reason.
set -euo pipefail
if [ -n "${OGIVE:-}" ]; then OGIVE="$(realpath "$OGIVE")"; fi
cd "$(dirname "${BASH_SOURCE[0]}")"

source ../program.bash
command -v python3 >/dev/null || skip 'no python3 on this machine'
export OGIVE
exec python3 -B run.py "$@"
