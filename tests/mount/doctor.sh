#!/usr/bin/env bash
# `ogive bench sick` gives a mount a known problem. The doctor gets only the mount point, and must
# rank the right cause first. For a healthy mount under load it must report no cause.
#
# Counters decide, not speed, so the suite does not depend on the machine's speed or load.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite doctor 'mounts with known problems, and the diagnosis'
needs_ogive
need python3 pgrep

# How long the doctor measures, and how long a problem may take to show.
readonly LOOK="${OGIVE_LOOK:-4s}"
readonly PATIENCE_SECONDS=120
# How often the doctor may try.
readonly LOOKS=3

# The PID of the running load, or empty.
BENCH=''

# end_load: stops the load when the suite ends.
end_load() {
    local code=$?
    set +e
    if [ -n "$BENCH" ]; then
        kill -INT "$BENCH" 2>/dev/null
        wait "$BENCH" 2>/dev/null
    fi
    (exit "$code")
    cleanup
}
trap end_load EXIT

# field FILE EXPRESSION: evaluates a Python expression over `x`, the value in a JSON file.
field() {
    python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$1" "$2"
}

is_up_or_gone() {
    [ -s "$WORK/sick" ] || ! kill -0 "$BENCH"
}

# provoke NAME: starts a mount with a problem and its load; sets BENCH and MNT.
provoke() {
    rm -f "$WORK/sick" "$WORK/errors"
    "$OGIVE" bench sick "$1" --json --for 10m --dir "$WORK" >"$WORK/sick" 2>"$WORK/errors" &
    BENCH=$!
    within_seconds "$PATIENCE_SECONDS" is_up_or_gone || true
    [ -s "$WORK/sick" ] || fail "$1 did not start in $PATIENCE_SECONDS s: $(cat "$WORK/errors")"
    MNT="$(field "$WORK/sick" 'x["mount_point"]')"
    remember_mount "$MNT"
    is_mounted "$MNT" || fail "$1: nothing is mounted at $MNT"
    # The counters show the load only after a moment.
    sleep 1
}

# heal: ends the load with SIGINT; it must remove its mount and files.
heal() {
    kill -INT "$BENCH"
    end_of 120 'the end of the load' "$BENCH" ||
        fail "the load ended with $?: $(cat "$WORK/errors")"
    BENCH=''
    ! is_mounted "$MNT" || fail "$MNT is still mounted"
    [ ! -e "$MNT" ] || fail "$MNT was left behind"
    [ -z "$(find "$WORK" -maxdepth 1 -name 'ogive-bench-sick.*')" ] || fail 'files were left behind'
}

# diagnose CODE [CODE...]: runs the doctor on the mount. Its exit code must be one of these; sets
# CODE.
diagnose() {
    local code=0 expected
    "$OGIVE" doctor "$MNT" --for "$LOOK" --json >"$WORK/answer" 2>"$WORK/notes" || code=$?
    CODE="$code"
    for expected in "$@"; do
        [ "$code" -ne "$expected" ] || return 0
    done
    cat "$WORK/answer" "$WORK/notes" >&2
    fail "the doctor ended with $code instead of $*"
}

# Exit code 8 is a cause that wastes CPU. A slow device wastes no CPU, so its code is 0.
declare -A codes=([large-records]=8 [pinned]=8 [small-arc]=8 [prefetch]=8
    [slow-source]=0 [slow-l2]=0)
for sickness in large-records small-arc pinned prefetch slow-source slow-l2; do
    provoke "$sickness"
    expected="$(field "$WORK/sick" 'x["expect"]')"
    # A load that has just begun may look like another one, or vanish next to other load. So the
    # doctor may try again.
    for ((look = 1; ; look++)); do
        diagnose 0 7 8 9
        first="$(field "$WORK/answer" 'x["findings"][0]["id"] if x["findings"] else "nothing"')"
        [ "$first" != "$expected" ] || [ "$CODE" -ne "${codes[$sickness]}" ] || break
        [ "$look" -lt "$LOOKS" ] || {
            cat "$WORK/answer" >&2
            fail "$sickness: the doctor names $first with exit code $CODE," \
                "not $expected with ${codes[$sickness]}"
        }
    done
    confidence="$(field "$WORK/answer" 'x["findings"][0]["confidence"] if x["findings"] else 0')"
    say "$sickness: $first ($confidence), look $look: $(field "$WORK/answer" 'x["sentence"]')"
    [ "$(field "$WORK/answer" 'x["findings"][0]["confidence"] >= 0.7')" = True ] ||
        fail "$sickness: the confidence is below 0.7"
    [ "$(field "$WORK/answer" 'len(x["findings"][0]["remedy"]["now"]) > 0')" = True ] ||
        fail "$sickness: no remedy"
    if [ "$sickness" = small-arc ]; then
        say 'a capture of it has the same diagnosis'
        "$OGIVE" capture "$MNT" --for "$LOOK" -o "$WORK/capture" 2>/dev/null
        "$OGIVE" capture "$MNT" --for "$LOOK" --redact -o "$WORK/redacted" 2>/dev/null
        for capture in capture redacted; do
            "$OGIVE" doctor "$WORK/$capture" --json >"$WORK/later" || true
            [ "$(field "$WORK/later" 'x["findings"][0]["id"]')" = "$expected" ] ||
                fail "the $capture has another diagnosis than the mount"
        done
        if zstd -dcq "$WORK/redacted" 2>/dev/null | grep -qaF -e "$MNT" -e "$(uname -n)"; then
            fail 'the redacted capture names the mount point or the host'
        fi
    fi
    heal
done

provoke healthy
diagnose 0
causes='[f["id"] for f in x["findings"] if f["role"] in ("cause", "not-cpu")]'
[ "$(field "$WORK/answer" "$causes")" = '[]' ] || {
    cat "$WORK/answer" >&2
    fail 'the doctor reports a cause for a healthy mount'
}
say "healthy: $(field "$WORK/answer" 'x["sentence"]')"
heal

# gone: whether no mount, directory or process of a benchmark is left.
gone() {
    ! grep -q " $WORK/ogive-bench-sick" /proc/self/mounts &&
        [ -z "$(find "$WORK" -maxdepth 1 -name 'ogive-bench-sick.*')" ] &&
        ! pgrep -f -- "--dir $WORK/ogive-bench-sick" >/dev/null
}

# After the benchmark is killed, its mounts clean up after the last answer. slow-source also has a
# process that is stopped most of the time.
for sickness in large-records slow-source; do
    say "$sickness, and the benchmark is killed"
    provoke "$sickness"
    kill -9 "$BENCH"
    wait_gone "$BENCH" || fail 'the benchmark survives SIGKILL'
    wait "$BENCH" 2>/dev/null || true
    eventually "$PATIENCE_SECONDS" "$sickness: nothing is left behind" gone
done

say 'the daemon of the mount is killed'
provoke slow-source
server="$(field "$MNT/.ogive/mount" 'x["pid"]')"
[ "$server" -ne "$BENCH" ] || fail 'the benchmark serves the mount itself'
kill -9 "$server"
wait_gone "$BENCH" || fail 'the benchmark waits for a dead mount'
! wait "$BENCH" 2>/dev/null || fail 'the benchmark does not fail with its mount'
eventually "$PATIENCE_SECONDS" 'nothing is left behind' gone
passed
