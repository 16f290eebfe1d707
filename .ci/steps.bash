# Steps with a time limit and a result, seeds, and a lock, for .ci/run and .ci/nightly. They source
# this file, after they have set `script` to their own path.
#
# Locks: `hold_lock` locks one file until the process ends. Steps do not inherit the lock, because a
# daemon that outlives its step would hold it for ever.
# shellcheck shell=bash

export CARGO_TERM_COLOR=never CARGO_NET_RETRY=10 RUST_BACKTRACE=1
# A clean clone builds once, so incremental state would only cost disk.
export CARGO_INCREMENTAL=0
cache="${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ogive"
export OGIVE_TEST_TOOLS="${OGIVE_TEST_TOOLS:-${cache}-test-tools}"
export PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$OGIVE_TEST_TOOLS/bin:$PATH"
# Outside the clone, so that the next clean clone finds its dependencies compiled.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$cache/target}"
# shellcheck disable=SC2034 # the sourcing scripts use it
target="$CARGO_TARGET_DIR"
readonly SKIPPED=77

# The tree follows the lints and the formatting of this toolchain. A newer one may add a lint, and
# then the check would fail without a change. Without rustup, the installed toolchain is used.
readonly TOOLCHAIN=1.95.0
if [ -z "${RUSTUP_TOOLCHAIN:-}" ] && command -v rustup >/dev/null &&
    rustup toolchain list | grep -q "^$TOOLCHAIN-"; then
    export RUSTUP_TOOLCHAIN="$TOOLCHAIN"
fi

# The same tree always has the same seed, and the next tree another. OGIVE_SEED repeats a run.
seed_of_tree() {
    local tree
    tree="$(git rev-parse -q --verify 'HEAD^{tree}' 2>/dev/null)" || tree=1
    echo $((16#${tree:0:12}))
}
export OGIVE_SEED="${OGIVE_SEED:-$(seed_of_tree)}"
export PROPTEST_RNG_SEED="$OGIVE_SEED"

# skip TEXT...: ends a step that cannot run here.
skip() {
    printf 'skipped: %s\n' "$*"
    exit "$SKIPPED"
}

# hold_lock NAME: allows one run at a time on this machine, because runs clean up after others and
# share the build directory. Waits ten minutes for another run.
hold_lock() {
    local file="$cache/$1.lock"
    mkdir -p "$cache"
    exec 9>>"$file"
    if ! flock -w 600 9; then
        printf 'another run holds %s: %s\n' "$file" "$(cat "$file")" >&2
        exit 1
    fi
    printf 'process %d in %s\n' "$$" "$PWD" >"$file"
}

# contained COMMAND...: runs a command in its own mount and PID namespaces. When their first process
# ends, by any signal, the kernel kills all others, also stopped ones, and removes their mounts.
# Where unshare fails, the command runs without namespaces.
contained() {
    local enter=(unshare --mount --propagation private --pid --fork --kill-child --mount-proc)
    if "${enter[@]}" true 2>/dev/null; then
        "${enter[@]}" "$@"
    else
        "$@"
    fi
}

# install_packages: installs the missing ones of `packages`, in `packages_seconds` at most. If one
# is unavailable, the others are still installed, and steps that need it are skipped.
install_packages() {
    local missing=() package
    command -v apt-get >/dev/null || skip 'no apt-get: only installed programs are used'
    # shellcheck disable=SC2154 # the sourcing scripts set them
    for package in "${packages[@]}"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || { echo 'all packages are installed'; return; }
    [ "$(id -u)" -eq 0 ] || skip "not root; not installed: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2154 # as above
    timeout $((packages_seconds * 4 / 10)) apt-get update -q || true
    timeout $((packages_seconds * 5 / 10)) \
        apt-get install -q -y --no-install-recommends "${missing[@]}" && return
    for package in "${missing[@]}"; do
        timeout $((packages_seconds / 10)) \
            apt-get install -q -y --no-install-recommends "$package" ||
            echo "unavailable: $package"
    done
}

# timeout(1) puts a step into its own process group, so signals of the terminal do not reach it.
# This passes them on.
step_process=''
interrupted() {
    [ -z "$step_process" ] || kill -TERM "$step_process" 2>/dev/null || true
    exit 130
}
trap interrupted INT TERM

# run_step NAME SECONDS OUTPUT FUNCTION [ARGUMENT...]: runs a function of `script` in its own shell,
# for SECONDS at most. Sets `result` and `took`. The file OUTPUT gets its output.
run_step() {
    local name="$1" limit="$2" output="$3" started="$SECONDS" code=0
    shift 3
    printf '\n== %s\n' "$name"
    # Waiting for a pipe would also wait for a process that the step left behind.
    # shellcheck disable=SC2154 # the sourcing scripts set `script`
    timeout --kill-after=10 "$limit" bash "$script" --function "$@" \
        > >(tee "$output") 2>&1 </dev/null 9>&- &
    step_process=$!
    wait "$step_process" || code=$?
    step_process=''
    # tee may still be writing the last lines.
    sleep 0.2
    case "$code" in
        0) result=passed ;;
        "$SKIPPED") result=skipped ;;
        124 | 137) result="failed (over $limit s)" ;;
        *) result="failed ($code)" ;;
    esac
    took=$((SECONDS - started))
    printf '== %s: %s, %d s\n' "$name" "$result" "$took"
}

# show_errors OUTPUT: the lines of a failed step with the reason, then its last lines.
show_errors() {
    grep -nE '^error|panicked at|^test .*FAILED|FAILED:|^failures:|^---- .* stdout' "$1" |
        tail -n 20 || true
    printf -- '--- last lines\n'
    tail -n 40 "$1"
}
