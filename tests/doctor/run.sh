#!/usr/bin/env bash
# The doctor on this host while loads of known truth run: `sudo tests/doctor/run.sh [LOAD...]`.
#
#   --list      the loads
#   --steady    only those that need next to nothing of the machine (the check runs these)
#   --way WAY   live, user, capture or all (default: live): asked as root, as an ordinary user, or
#               by a capture that is diagnosed afterwards
#   --for N     seconds of each look (default: 5)
#   --keep DIR  keeps each answer there
#
# OGIVE     the program (default: target/release/ogive of this tree)
#
# Each load runs in a control group of its own. The CPU that the group and the machine used during
# the look is the truth, so a busy machine makes no answer wrong. A load is ended after its looks.
# Exit code 77: cannot run here, and says why.
set -euo pipefail
if [ -n "${OGIVE:-}" ]; then OGIVE="$(realpath "$OGIVE")"; fi
cd "$(dirname "${BASH_SOURCE[0]}")"

source ../program.bash
command -v python3 >/dev/null || skip 'no python3 on this machine'
export OGIVE
exec python3 -B run.py "$@"
