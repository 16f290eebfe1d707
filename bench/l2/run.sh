#!/usr/bin/env bash
# Measures the second level against what nothing can beat: the bare device and the bare cipher.
#
# usage: bench/l2/run.sh [DIRECTORY]     (default: /var/tmp; 1.5 GiB are used and given back)
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
exec cargo run --release --quiet --manifest-path "$here/Cargo.toml" -- "${1:-/var/tmp}"
