#!/usr/bin/env bash
# The requests that a slow source gets, for programs that look at many small files, first and again:
# directly, and through ogive and its peers.
#
# usage: bench/slow-origin/run.sh [DELAY_SECONDS...]     (default: 0.001)
#
# Needs root, tracefs, bindfs and git. OGIVE_BIN names the ogive to measure, PASSTHROUGH_HP
# libfuse's pass-through, which is left out without it. BENCH_CHANGED=1 measures a tree that differs
# from its commit, and marks the results. The kernel's trace event counts requests, so they hardly
# depend on other load of the machine. Seconds do; they only show the delay.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
target="${CARGO_TARGET_DIR:-$root/target}"
ogive="${OGIVE_BIN:-$target/release/ogive}"
passthrough="$target/bench/release/bench-passthrough"
commit="$("$root/bench/commit.sh")"
(cd "$root/bench/passthrough" &&
    CARGO_TARGET_DIR="$target/bench" cargo build --release --locked --quiet)
[ -x "$ogive" ] || { echo "slow-origin: no $ogive: cargo build --release -p ogive" >&2; exit 1; }

work="$(mktemp -d /var/tmp/ogive-slow-origin.XXXXXX)"
events="$work/tracing/instances/ogive-slow-$$"
served=()
count=0

# unmount DIRECTORY: also a busy one.
unmount() {
    local _
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        mountpoint -q "$1" || return 0
        umount "$1" 2>/dev/null || sleep 0.2
    done
    umount -l "$1"
}

# wait_for DIRECTORY: until it is mounted.
wait_for() {
    local _
    for _ in $(seq 300); do
        ! mountpoint -q "$1" || return 0
        sleep 0.1
    done
    echo "slow-origin: nothing is mounted at $1" >&2
    return 1
}

finish() {
    local code=$?
    set +e
    unmount "$view"
    unmount "$slow"
    [ "${#served[@]}" -eq 0 ] || wait "${served[@]}"
    rmdir "$events"
    umount "$work/tracing"
    rm -rf "$work"
    exit "$code"
}
slow="$work/slow" view="$work/view"
mkdir "$work"/{source,tracing}
mount -t tracefs tracefs "$work/tracing"
mkdir "$events"
trap finish EXIT
trap 'exit 130' INT TERM

# 400 files in 20 directories, and a repository of as many.
for ((directory = 0; directory < 20; directory++)); do
    mkdir -p "$work/source/tree/$directory" "$work/source/git/$directory"
    for ((file = 0; file < 20; file++)); do
        echo "$directory $file" | tee "$work/source/tree/$directory/$file" \
            >"$work/source/git/$directory/$file"
    done
done
(
    cd "$work/source/git"
    export HOME="$work" GIT_CONFIG_NOSYSTEM=1
    git init -q -b main .
    git -c user.name=nobody -c user.email=nobody@example.org add .
    git -c user.name=nobody -c user.email=nobody@example.org commit -qm one
    sleep 2.5
    git status --porcelain
)

walk() { find tree -printf '%s\n'; }
list() { ls -lR tree; }
status() {
    HOME="$work" git --no-optional-locks -c safe.directory='*' -C git status --porcelain
}
absent() {
    local number
    for ((number = 0; number < 200; number++)); do
        [ ! -e "tree/$((number % 20))/absent.$number" ] || return 1
    done
}

# measure WAY DELAY PROGRAM: prints a row of requests and seconds, first, and again after two
# seconds, when a TTL of one second has expired.
measure() {
    local way="$1" delay="$2" program="$3" time event row began hundredths
    # A new mount each time, without a wait for late users of the previous one.
    count=$((count + 1))
    slow="$work/slow.$count" view="$work/view.$count"
    mkdir "$slow" "$view"
    "$passthrough" --delay "$delay" --threads 64 --allow-other "$work/source" "$slow" &
    served+=($!)
    wait_for "$slow"
    case "$way" in
        nothing) mount --bind "$slow" "$view" ;;
        bindfs) bindfs "$slow" "$view" ;;
        passthrough_hp)
            "$PASSTHROUGH_HP" "$slow" "$view" &
            served+=($!)
            wait_for "$view"
            ;;
        ogive) "$ogive" mount "$slow" "$view" ;;
        ogive\ *) "$ogive" mount "--${way#ogive }" "$slow" "$view" ;;
    esac
    event="$events/events/fuse/fuse_request_send"
    echo "connection==$(mountpoint -d "$slow" | cut -d: -f2)" >"$event/filter"
    row=''
    for time in first again; do
        [ "$time" = first ] || sleep 2
        : >"$events/trace"
        echo 1 >"$event/enable"
        began="$(date +%s%N)"
        (cd "$view" && "$program") >/dev/null
        hundredths=$((($(date +%s%N) - began) / 10000000))
        echo 0 >"$event/enable"
        row+=" | $(grep -c 'fuse_request_send:' "$events/trace" || true)"
        row+=" | $(printf '%d.%02d' $((hundredths / 100)) $((hundredths % 100)))"
    done
    printf '| %s | %s%s |\n' "$program" "$way" "$row"
    unmount "$view"
    unmount "$slow"
}

ways=(nothing bindfs ogive 'ogive metadata-ttl=1h' 'ogive immutable')
[ -z "${PASSTHROUGH_HP:-}" ] || ways=(nothing bindfs passthrough_hp "${ways[@]:2}")
[ "$#" -gt 0 ] || set -- 0.001
printf 'Commit %s.\n' "$commit"
for delay; do
    printf '\nEach request of the source takes %s s.\n\n' "$delay"
    echo '| program | before the source | requests, first | s | requests, again | s |'
    echo '|---|---|--:|--:|--:|--:|'
    for program in walk list status absent; do
        for way in "${ways[@]}"; do
            measure "$way" "$delay" "$program"
        done
    done
done
