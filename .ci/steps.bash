# Shared by the check and the nightly run: steps with a limit and a record, seeds, and one lock.
# Sourced by .ci/run and .ci/nightly, which set `script` to their own path first.
#
# Locks: one file, held from begin_run to the end of the process. Processes of a step never hold it,
# because a daemon that outlives its step would hold it for ever.
# shellcheck shell=bash

export CARGO_TERM_COLOR=never CARGO_NET_RETRY=10 RUST_BACKTRACE=1
# A clean clone is built once, so it needs no state between edits.
export CARGO_INCREMENTAL=0
cache="${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ogive"
export OGIVE_TEST_TOOLS="${OGIVE_TEST_TOOLS:-${cache}-test-tools}"
export PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$OGIVE_TEST_TOOLS/bin:$PATH"
# Outside the clone, so that the next clean clone finds its dependencies compiled.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$cache/target}"
# shellcheck disable=SC2034 # for whoever sources this
target="$CARGO_TARGET_DIR"
readonly SKIPPED=77

# The toolchain whose lints and formatting the tree was written for, if it is installed. A newer one
# may bring a lint, and then the check would fail without a change.
readonly TOOLCHAIN=1.95.0
if [ -z "${RUSTUP_TOOLCHAIN:-}" ] && command -v rustup >/dev/null &&
    rustup toolchain list | grep -q "^$TOOLCHAIN-"; then
    export RUSTUP_TOOLCHAIN="$TOOLCHAIN"
fi

# The seed follows from the tree's hash, so each tree has its own. OGIVE_SEED repeats a run.
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

# hold_lock NAME: one run at a time on this machine, because runs clear leftovers and use things that
# the machine has once. Waits ten minutes for another run.
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

# contained COMMAND...: runs it in namespaces that end with their outermost process, also after a
# kill. Processes that were stopped or left their session end too, and so do their mounts. Where
# namespaces are not allowed, the command runs without them.
contained() {
    local wall=(unshare --mount --propagation private --pid --fork --kill-child --mount-proc)
    if "${wall[@]}" true 2>/dev/null; then
        "${wall[@]}" "$@"
    else
        "$@"
    fi
}

# install_packages: the missing ones of `packages`, in at most `packages_seconds`. An unavailable
# package stops no other; steps that need it are skipped and say so.
install_packages() {
    local missing=() package
    command -v apt-get >/dev/null || skip 'no apt-get: what the machine has is used'
    # shellcheck disable=SC2154 # whoever sources this sets them
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
            echo "not to be had: $package"
    done
}

# A step has its own process group, so signals of the terminal or the caller do not reach it.
step_process=''
interrupted() {
    [ -z "$step_process" ] || kill -TERM "$step_process" 2>/dev/null || true
    exit 130
}
trap interrupted INT TERM

# run_step NAME SECONDS OUTPUT FUNCTION [ARGUMENT...]: runs a function of `script` in a shell of its
# own, at most so long. Sets `result` and `took`. OUTPUT gets its output.
run_step() {
    local name="$1" limit="$2" output="$3" started="$SECONDS" code=0
    shift 3
    printf '\n== %s\n' "$name"
    # Without waiting for a pipe, because a leftover process of a step would hold it open.
    # shellcheck disable=SC2154 # `script` is whoever sources this
    timeout --kill-after=10 "$limit" bash "$script" --function "$@" \
        > >(tee "$output") 2>&1 </dev/null 9>&- &
    step_process=$!
    wait "$step_process" || code=$?
    step_process=''
    # Wait for the rest of the output.
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

# what_matters OUTPUT: the lines of a failed step that show the reason, then its last lines.
what_matters() {
    grep -nE '^error|panicked at|^test .*FAILED|FAILED:|^failures:|^---- .* stdout' "$1" |
        tail -n 20 || true
    printf -- '--- its last lines\n'
    tail -n 40 "$1"
}
