#!/usr/bin/env bash
# The page of ogive watch in a real browser: `sudo tests/watch/run.sh`.
#
# OGIVE     the program (default: target/release/ogive of this tree)
# CHROMIUM  the browser (default: chromium, chromium-browser or google-chrome)
# PICTURES  a directory for the pictures of docs/watch.md (optional)
#
# Exit code 77: it cannot run here, and prints the reason.
set -euo pipefail
[ -z "${PICTURES:-}" ] || PICTURES="$(realpath "$PICTURES")"
cd "$(dirname "${BASH_SOURCE[0]}")"

source ../program.bash
for browser in chromium chromium-browser google-chrome; do
    CHROMIUM="${CHROMIUM:-$(command -v "$browser" || true)}"
done
[ -n "$CHROMIUM" ] || skip 'no chromium on this machine'
command -v npm >/dev/null || skip 'no npm on this machine'
[ "$(node -e 'console.log(process.versions.node.split(".")[0])')" -ge 20 ] ||
    skip 'node is older than 20'

# The packages are pinned with their hashes, and are installed outside the tree.
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cp package.json package-lock.json page.test.mjs pictures.mjs "$work"
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
(cd "$work" && timeout 100 npm ci --no-audit --no-fund --silent) ||
    skip 'the npm packages cannot be installed'
export OGIVE CHROMIUM PICTURES
cd "$work"
node --test --test-concurrency=1 page.test.mjs
[ -z "${PICTURES:-}" ] || node pictures.mjs
