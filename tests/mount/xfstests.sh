#!/usr/bin/env bash
# The group generic/quick of xfstests, on two mounts. xfstests.expected lists the tests that fail,
# with reasons. Any other failure fails the suite, and so does a listed test that passes.
#
# usage: tests/mount/xfstests.sh [TEST...]    (default: all of generic/quick)
#
# It runs in a new mount namespace, which has the users that the tests need. The machine's list of
# users does not change.
#
# Environment:
#   XFSTESTS_DIR      a built tree of xfstests
#   XFSTESTS_SECONDS  how long one test may take (default: 300)
#   XFSTESTS_KEEP     a directory for the results: a line a test, and the output of failed tests
# shellcheck source=tests/mount/lib.sh
if [ -z "${OGIVE_OWN_MOUNTS:-}" ] && [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    OGIVE_OWN_MOUNTS=1 exec unshare --mount --propagation private bash "${BASH_SOURCE[0]}" "$@"
fi
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite xfstests 'the quick tests of xfstests'
tree="${XFSTESTS_DIR:-}"
[ -n "$tree" ] || skip 'no XFSTESTS_DIR, a built tree of xfstests'
[ -x "$tree/ltp/fsx" ] || skip "XFSTESTS_DIR is $tree, where xfstests is not built"
[ -n "${OGIVE_OWN_MOUNTS:-}" ] || skip 'no mount namespaces on this machine'
need perl gawk setfacl getfattr mkfs.ext4 setsid
seconds="${XFSTESTS_SECONDS:-300}"
keep="${XFSTESTS_KEEP:-$WORK/kept}"

mkdir "$WORK"/{bin,results,test,scratch,test-source,scratch-source}
mkdir -p "$keep"
# Some tests fill the file system, so each source has a small one.
for place in test scratch; do
    truncate -s 4G "$WORK/$place.image"
    mkfs.ext4 -q -F "$WORK/$place.image"
    mount -o loop "$WORK/$place.image" "$WORK/$place-source" ||
        skip 'no loop device on this machine'
    remember_mount "$WORK/$place-source"
done
for place in test scratch; do
    remember_mount "$WORK/$place"
done

# The users of the tests exist only in this namespace.
cp /etc/passwd /etc/group "$WORK"
number=64001
for user in fsgqa 123456-fsgqa fsgqa2; do
    if ! grep -q "^$user:" "$WORK/passwd"; then
        echo "$user:x:$number:$number::/tmp:/bin/bash" >>"$WORK/passwd"
        echo "$user:x:$number:" >>"$WORK/group"
    fi
    number=$((number + 1))
done
mount --bind "$WORK/passwd" /etc/passwd
mount --bind "$WORK/group" /etc/group

# The tests call mount(8) for a FUSE type with device names. This wrapper maps the names to
# directories.
cat >"$WORK/bin/mount" <<'END'
#!/usr/bin/env bash
type='' options='' rest=()
words=("$@")
for ((at = 0; at < ${#words[@]}; at++)); do
    case "${words[at]}" in
        -t) at=$((at + 1)) && type="${words[at]}" ;;
        -o) at=$((at + 1)) && options+="${options:+,}${words[at]}" ;;
        -o*) options+="${options:+,}${words[at]#-o}" ;;
        -*) exec "$REAL_MOUNT" "$@" ;;
        *) rest+=("${words[at]}") ;;
    esac
done
place=''
case "$type $options ${rest[*]}" in
    fuse.view\ *view-test* | *remount*"$VIEWS/test" | *remount*view-test) place=test ;;
    fuse.view\ *view-scratch* | *remount*"$VIEWS/scratch" | *remount*view-scratch) place=scratch ;;
    *) exec "$REAL_MOUNT" "$@" ;;
esac
at="$VIEWS/$place"
[ "${#rest[@]}" -lt 2 ] || at="${rest[1]}"
case ",$options," in *,remount,*) ;; *) options="fsname=view-$place${options:+,$options}" ;; esac
exec $VIEW_COMMAND -o "$options" "$VIEWS/$place-source" "$at"
END
# The tests expect the type "fuse", without the subtype.
cat >"$WORK/bin/df" <<'END'
#!/bin/sh
"$REAL_DF" "$@" | sed 's/ fuse\.[a-z]* / fuse /'
END
chmod 755 "$WORK/bin/"*
REAL_MOUNT="$(command -v mount)" REAL_DF="$(command -v df)" VIEWS="$WORK"
VIEW_COMMAND="${OGIVE_MOUNT_COMMAND:-$OGIVE mount --allow-other --dev --suid}"
export REAL_MOUNT REAL_DF VIEWS VIEW_COMMAND PATH="$WORK/bin:$PATH"
cat >"$WORK/config" <<END
export FSTYP=fuse FUSE_SUBTYP=.view
export TEST_DEV=view-test TEST_DIR=$WORK/test
export SCRATCH_DEV=view-scratch SCRATCH_MNT=$WORK/scratch
export RESULT_BASE=$WORK/results
END
export HOST_OPTIONS="$WORK/config"

tests=("$@")
if [ "$#" -eq 0 ]; then
    mapfile -t tests < <(awk '!/^#/ && / quick( |$)/ { print "generic/" $1 }' \
        "$tree/tests/generic/group.list")
fi
# These two tests raise a resource limit.
if ! (ulimit -f 1024 && ulimit -f unlimited) 2>/dev/null; then
    say 'limits cannot be raised on this machine; left out: generic/394, generic/564'
    mapfile -t tests < <(printf '%s\n' "${tests[@]}" | grep -vxE 'generic/(394|564)')
fi
[ "${#tests[@]}" -gt 0 ] || fail "no tests in $tree/tests/generic/group.list"

# Starting ./check takes longer than most tests, so each start gets many tests. If one of them takes
# too long, ./check is killed, and started again for the rest.
: >"$WORK/found"

check=''
end_check() {
    local code=$?
    [ -z "$check" ] || kill -KILL -- "-$check" 2>/dev/null
    (exit "$code")
    cleanup
}
trap end_check EXIT

# one_result TEST: the result of a test in one word, from the output of ./check.
one_result() {
    local line
    line="$(grep -a "^$1 " "$WORK/log" | head -n 1 || true)"
    case "$line" in
        *'[not run]'*) echo notrun ;;
        *'[failed'* | *'- output mismatch'* | *'_check_'* | *dmesg*) echo failed ;;
        *[0-9]s) echo passed ;;
        *) echo failed ;;
    esac
}

# note TEST RESULT: records a result, and keeps the output of a failed test.
note() {
    echo "$1 $2" | tee -a "$WORK/found" >>"$keep/found"
    case "$2" in failed | slow) ;; *) return 0 ;; esac
    say "$1: $2"
    cp "$WORK/results/$1".* "$keep" 2>/dev/null || true
}

# run_some TEST...: runs tests until one takes too long; sets `done` to the number of tests that
# ran.
run_some() {
    local size=-1 since="$SECONDS" last
    (cd "$tree" && exec setsid ./check "$@") >"$WORK/log" 2>&1 </dev/null &
    check=$!
    while kill -0 "$check" 2>/dev/null; do
        sleep 1
        if [ "$size" -ne "$(stat -c %s "$WORK/log")" ]; then
            size="$(stat -c %s "$WORK/log")" since="$SECONDS"
        elif [ $((SECONDS - since)) -gt "$seconds" ]; then
            kill -KILL -- "-$check" 2>/dev/null || true
        fi
    done
    wait "$check" 2>/dev/null || true
    check=''
    # The next start must not find old mounts.
    force_unmount "$WORK/scratch"
    force_unmount "$WORK/test"
    done=0
    last="$(grep -ao '^generic/[0-9]*' "$WORK/log" | tail -n 1 || true)"
    for test; do
        grep -qa "^$test " "$WORK/log" || break
        done=$((done + 1))
        if [ "$test" = "$last" ] && ! grep -qa '^Ran:' "$WORK/log"; then
            note "$test" slow
        else
            note "$test" "$(one_result "$test")"
        fi
    done
    [ "$done" -gt 0 ] || { tail -n 20 "$WORK/log"; fail "./check did not begin with $1"; }
}

# ./check runs tests in this order.
mapfile -t rest < <(printf '%s\n' "${tests[@]}" | sort)
while [ "${#rest[@]}" -gt 0 ]; do
    run_some "${rest[@]:0:50}"
    rest=("${rest[@]:done}")
done

# count RESULT: the number of tests with this result.
count() {
    grep -c " $1\$" "$WORK/found" || true
}
say "$(count passed) passed, $(count failed) failed, $(count slow) took over $seconds s," \
    "$(count notrun) do not apply"
[ "$(count passed)" -gt 0 ] || fail 'no test passed'

expected="$HERE/xfstests.expected"
wrong=0
while read -r test result; do
    why="$(sed -n "s|^$test  *||p" "$expected")"
    case "$result:${why:+expected}" in
        failed:) say "$test failed unexpectedly" && wrong=$((wrong + 1)) ;;
        slow:) say "$test unexpectedly took over $seconds s" && wrong=$((wrong + 1)) ;;
        passed:expected) say "$test passes; its row must go: $why" && wrong=$((wrong + 1)) ;;
        failed:expected | slow:expected) say "$test fails as expected: $why" ;;
    esac
done <"$WORK/found"
[ "$wrong" -eq 0 ] || fail "$wrong unexpected results"
passed
