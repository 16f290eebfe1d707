#!/usr/bin/env bash
# The closed loop: a benchmark makes a mount sick in a known way, and the doctor, which gets only
# the mount point, must put the right cause first. It must blame nothing on a healthy mount under
# load.
#
# Counters decide, not speed, so the suite does not depend on the speed or load of the machine.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite doctor 'mounts that are made ill, and what the doctor says'
needs_ogive
need python3 pgrep

# The length of a look of the doctor, and the limit for a sickness to show.
readonly LOOK="${OGIVE_LOOK:-4s}"
readonly PATIENCE_SECONDS=120
# The limit of looks.
readonly LOOKS=3

# The load that runs, if there is one.
BENCH=''

# end_load: ends the load at every end of the suite, so that nothing is left on the machine.
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

# field FILE EXPRESSION: a value of a JSON file, by a Python expression over `x`.
field() {
    python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$1" "$2"
}

is_up_or_gone() {
    [ -s "$WORK/sick" ] || ! kill -0 "$BENCH"
}

# provoke NAME: makes a mount sick, and returns once the load runs; sets BENCH and MNT.
provoke() {
    rm -f "$WORK/sick" "$WORK/said"
    "$OGIVE" bench sick "$1" --json --for 10m --dir "$WORK" >"$WORK/sick" 2>"$WORK/said" &
    BENCH=$!
    within_seconds "$PATIENCE_SECONDS" is_up_or_gone || true
    [ -s "$WORK/sick" ] || fail "$1 did not come up in $PATIENCE_SECONDS s: $(cat "$WORK/said")"
    MNT="$(field "$WORK/sick" 'x["mount_point"]')"
    remember_mount "$MNT"
    is_mounted "$MNT" || fail "$1: nothing is mounted at $MNT"
    # It takes a moment until the counters show the load.
    sleep 1
}

# heal: ends the load like Ctrl-C; nothing may be left.
heal() {
    kill -INT "$BENCH"
    end_of 120 'the end of the load' "$BENCH" || fail "the load ended with $?: $(cat "$WORK/said")"
    BENCH=''
    ! is_mounted "$MNT" || fail "$MNT is still mounted"
    [ ! -e "$MNT" ] || fail "$MNT was left behind"
    [ -z "$(find "$WORK" -maxdepth 1 -name 'ogive-bench-sick.*')" ] || fail 'files were left behind'
}

# ask CODE [CODE...]: asks the doctor about the mount; it must end with one of these codes. Sets CODE.
ask() {
    local code=0 expected
    "$OGIVE" doctor "$MNT" --for "$LOOK" --json >"$WORK/answer" 2>"$WORK/notes" || code=$?
    CODE="$code"
    for expected in "$@"; do
        [ "$code" -ne "$expected" ] || return 0
    done
    cat "$WORK/answer" "$WORK/notes" >&2
    fail "the doctor ended with $code instead of $*"
}

# A cause (exit code 8); or, for slowness without a waste of CPU, an answer without blame (0).
declare -A codes=([large-records]=8 [pinned]=8 [small-arc]=8 [prefetch]=8
    [slow-source]=0 [slow-l2]=0)
for sickness in large-records small-arc pinned prefetch slow-source slow-l2; do
    provoke "$sickness"
    expected="$(field "$WORK/sick" 'x["expect"]')"
    # For a moment, a new load may look like another problem, or be small next to other load of the
    # machine. So the doctor looks again.
    for ((look = 1; ; look++)); do
        ask 0 7 8 9
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
        fail "$sickness: the doctor is not sure"
    [ "$(field "$WORK/answer" 'len(x["findings"][0]["remedy"]["now"]) > 0')" = True ] ||
        fail "$sickness: no remedy"
    if [ "$sickness" = small-arc ]; then
        say 'a capture of it says the same elsewhere'
        "$OGIVE" capture "$MNT" --for "$LOOK" -o "$WORK/capture" 2>/dev/null
        "$OGIVE" capture "$MNT" --for "$LOOK" --redact -o "$WORK/redacted" 2>/dev/null
        for capture in capture redacted; do
            "$OGIVE" doctor "$WORK/$capture" --json >"$WORK/later" || true
            [ "$(field "$WORK/later" 'x["findings"][0]["id"]')" = "$expected" ] ||
                fail "the $capture is diagnosed otherwise than the mount"
        done
        if zstd -dcq "$WORK/redacted" 2>/dev/null | grep -qaF -e "$MNT" -e "$(uname -n)"; then
            fail 'the redacted capture names the mount point or the host'
        fi
    fi
    heal
done

provoke healthy
ask 0
causes='[f["id"] for f in x["findings"] if f["role"] in ("cause", "not-cpu")]'
[ "$(field "$WORK/answer" "$causes")" = '[]' ] || {
    cat "$WORK/answer" >&2
    fail 'a healthy mount is accused'
}
say "healthy: $(field "$WORK/answer" 'x["sentence"]')"
heal

# gone: whether a benchmark has left no mount, no directory and no process.
gone() {
    ! grep -q " $WORK/ogive-bench-sick" /proc/self/mounts &&
        [ -z "$(find "$WORK" -maxdepth 1 -name 'ogive-bench-sick.*')" ] &&
        ! pgrep -f -- "--dir $WORK/ogive-bench-sick" >/dev/null
}

# All of its readers get answers, and its mounts remove its directory if it cannot do so any more.
# Below slow-source, a process is stopped most of the time.
for sickness in large-records slow-source; do
    say "$sickness, killed in the middle"
    provoke "$sickness"
    kill -9 "$BENCH"
    wait_gone "$BENCH" || fail 'it does not die'
    wait "$BENCH" 2>/dev/null || true
    eventually "$PATIENCE_SECONDS" "$sickness: nothing is left behind" gone
done

say 'the process that serves the mount is killed'
provoke slow-source
server="$(field "$MNT/.ogive/mount" 'x["pid"]')"
[ "$server" -ne "$BENCH" ] || fail 'the load is served by its own process'
kill -9 "$server"
wait_gone "$BENCH" || fail 'the load waits for a mount that has gone'
! wait "$BENCH" 2>/dev/null || fail 'nobody was told that the mount had gone'
eventually "$PATIENCE_SECONDS" 'nothing is left behind' gone
passed
