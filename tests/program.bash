# Checks the needs of a test of the whole program: the program, root and /dev/fuse. Scripts in a
# folder below source it with that folder as working directory. Sets OGIVE.
# shellcheck shell=bash

# skip TEXT...: ends a test that cannot run here. It does not count as passed.
skip() {
    printf 'skipped: %s\n' "$*"
    exit 77
}

OGIVE="${OGIVE:-${CARGO_TARGET_DIR:-$PWD/../../target}/release/ogive}"
[ -x "$OGIVE" ] || skip "$OGIVE is not built: cargo build --release -p ogive"
[ "$(id -u)" -eq 0 ] || skip 'mounting for other users needs root'
[ -c /dev/fuse ] || skip 'no /dev/fuse on this machine'
