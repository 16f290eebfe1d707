#!/usr/bin/env bash
# Compares the second level with its limits, the bare device and the bare cipher, and with other
# caches on the same disk.
#
# usage: bench/l2/run.sh [DIRECTORY [reads|seals|recovery|amplification]... [--trace FILE]...]
#
# DIRECTORY (default: /var/tmp) is to be on the disk that is measured, not a tmpfs; 2.5 GiB are used
# there and given back. Traces are of any format that `ogive sim` reads.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[ "$#" -gt 0 ] || set -- /var/tmp
exec cargo run --release --quiet --manifest-path "$here/Cargo.toml" -- "$@"
