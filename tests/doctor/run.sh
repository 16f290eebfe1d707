#!/usr/bin/env bash
# The doctor on this host while loads of known truth run: `sudo tests/doctor/run.sh [LOAD...]`.
#
#   --list      the loads
#   --steady    only loads that use very little of the machine (the check runs these)
#   --way WAY   live, user, capture or all (default: live): ask as root, as an ordinary user, or
#               through a capture that is diagnosed afterwards
#   --for N     seconds of each capture (default: 5)
#   --keep DIR  keep each answer in DIR
#
# OGIVE     the program (default: target/release/ogive of this tree)
#
# Each load runs in a control group of its own. The CPU that the group and the machine used during
# the capture is the truth, so other load does not make an answer wrong. A load ends after its
# captures. Exit code 77: the tests cannot run here; the output has the reason.
set -euo pipefail
if [ -n "${OGIVE:-}" ]; then OGIVE="$(realpath "$OGIVE")"; fi
cd "$(dirname "${BASH_SOURCE[0]}")"

source ../program.bash
command -v python3 >/dev/null || skip 'no python3 on this machine'
export OGIVE
exec python3 -B run.py "$@"
