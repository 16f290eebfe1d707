#!/bin/sh
# Measures ogive and its peers: bench/run.sh [quick|full] [GROUP...] (see bench/README.md). Needs
# root. Installs nothing, and reports missing programs.
set -eu

BENCH=$(cd "$(dirname "$0")" && pwd -P)
BENCH_ROOT=$(dirname "$BENCH")
BENCH_WORK=${BENCH_WORK:-$BENCH/work}
BENCH_RESULTS=${BENCH_RESULTS:-$BENCH/results}
TARGET=${CARGO_TARGET_DIR:-$BENCH_ROOT/target}/bench
HARNESS=$TARGET/release/bench-harness
PASSTHROUGH_BIN=$TARGET/release/bench-passthrough
export BENCH_WORK BENCH_RESULTS PASSTHROUGH_BIN

case ${1:-} in
-h | --help)
    echo "usage: bench/run.sh [quick|full] [arc|sequential|metadata|idle|caching|workloads ...]"
    echo "       bench/run.sh clean    remove file sets and what an interrupted run left behind"
    echo "BENCH_CHANGED=1 measures a tree that differs from its commit, and marks the results."
    exit 0
    ;;
esac

missing=
for tool in cargo fio find dd; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    echo "bench: not found:$missing" >&2
    echo "bench: on Debian: apt-get install fio findutils coreutils;" \
        "Rust from https://rustup.rs" >&2
    exit 1
fi
for peer in bindfs gocryptfs rclone; do
    command -v "$peer" >/dev/null ||
        echo "bench: $peer is not installed and will be left out (apt-get install $peer)" >&2
done
if [ ! -e /dev/fuse ]; then
    echo "bench: no /dev/fuse here (modprobe fuse)" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "bench: mounts, drops caches and makes cgroups: run as root" >&2
    exit 1
fi

build() { # folder, package's own or the workspace's target folder, arguments
    # shellcheck disable=SC2086 # several arguments, or none
    (cd "$1" && CARGO_TARGET_DIR=$2 cargo build --release --locked --quiet $3)
}
build "$BENCH/harness" "$TARGET" ""
build "$BENCH/passthrough" "$TARGET" ""

if [ "${1:-}" = clean ]; then
    "$HARNESS" leftovers
    rm -rf "$BENCH_WORK"
    exit 0
fi

BENCH_COMMIT=$("$BENCH/commit.sh")
export BENCH_COMMIT

if [ -z "${OGIVE_BIN:-}" ]; then
    OGIVE_BIN=${CARGO_TARGET_DIR:-$BENCH_ROOT/target}/release/ogive
    build "$BENCH_ROOT" "${CARGO_TARGET_DIR:-$BENCH_ROOT/target}" "-p ogive" ||
        echo "bench: ogive does not build: its rows are left out" >&2
fi
export OGIVE_BIN

# However the run ends, nothing stays mounted or running. File sets stay for the next run;
# `bench/run.sh clean` removes them.
child=
finish() {
    status=$?
    trap - EXIT INT TERM HUP
    if [ -n "$child" ] && kill -0 "$child" 2>/dev/null; then
        kill "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    "$HARNESS" leftovers || status=1
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

"$HARNESS" "$@" &
child=$!
wait "$child"
