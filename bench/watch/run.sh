#!/usr/bin/env bash
# The cost of ogive watch, over a real mount and with a real page:
# `sudo bench/watch/run.sh [SECONDS]`.
#
# SECONDS   how long each state is measured (default: 60)
# OGIVE     the program (default: target/release/ogive of this tree)
# CHROMIUM  the browser (default: chromium, chromium-browser or google-chrome)
# PERF      a file: records stacks of ogive watch there while the page is open (perf record)
#
# Needs root, /dev/fuse, node 20, npm and python3. Prints a table with the load of the machine above
# it.
set -euo pipefail
[ -z "${OGIVE:-}" ] || OGIVE="$(realpath "$OGIVE")"
cd "$(dirname "${BASH_SOURCE[0]}")"

OGIVE="${OGIVE:-${CARGO_TARGET_DIR:-$PWD/../../target}/release/ogive}"
for browser in chromium chromium-browser google-chrome; do
    CHROMIUM="${CHROMIUM:-$(command -v "$browser" || true)}"
done
[ -n "$CHROMIUM" ] || exit 1
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cp ../../tests/watch/package.json ../../tests/watch/package-lock.json measure.mjs "$work"
(cd "$work" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --silent)
export OGIVE CHROMIUM
cd "$work"
node measure.mjs "${1:-60}"
