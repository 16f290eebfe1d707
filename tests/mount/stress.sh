#!/usr/bin/env bash
# stress-ng's class of file systems, all of its stressors at once, each with its own checks. A
# failure of a stressor is tried on the file system below, too; if it fails there as well, it is not
# a fault of the mount. The files left at the end must be the same in the mount and below it.
#
# Environment:
#   OGIVE_STRESS_SECONDS  how long for each mode (default: 12)
#   OGIVE_ALL             1: one stressor after the other besides, five seconds each
# shellcheck source=tests/mount/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite stress "stress-ng's stressors of file systems, by default and with direct I/O"
need stress-ng chattr

seconds_each="${OGIVE_STRESS_SECONDS:-12}"

# All of the class but those that never touch a file of the directory they are given (bind-mount,
# binderfs, eventfd, ioprio and procfs), and io, which opens every mount of the machine to sync it, so
# that no other program can unmount its own.
wanted=(access chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dnotify dup fallocate
    fanotify fcntl fiemap file-ioctl filename flock fpunch fsize fstat getdent handle hdd
    inode-flags iomix lease link locka lockf lockofd mknod open rename symlink sync-file touch
    utime verity xattr)
# These run alone. With the others, inotify waited more than its ten seconds for IN_DELETE_SELF of a
# removed directory, in half of the runs. The holder of that directory is unknown.
alone=(inotify)

# Stressors of features that the mount lacks, each with its reason. They must report that, not fail.
declare -A impossible=(
    [fiemap]='FUSE has no request for FS_IOC_FIEMAP'
    [verity]='ogive answers FS_IOC_ENABLE_VERITY with ENOTTY (docs/limits.md)'
)

# Older and newer stress-ng have other stressors.
class="$(stress-ng --class 'filesystem?' 2>&1)" || true
stressors=()
for stressor in "${wanted[@]}"; do
    [[ " ${class#*:} " != *" $stressor "* ]] || stressors+=("$stressor")
done
[ "${#stressors[@]}" -ge 30 ] || fail "stress-ng knows only these: ${stressors[*]}"

# failures LOG: the stressors that failed, each once.
failures() {
    sed -n 's/^stress-ng: fail: *\[[0-9]*\] \([a-z-]*\):.*/\1/p' "$1" | sort -u
}

# names DIRECTORY: the names below, with kind, mode and owner of each.
names() {
    (cd "$1" && find . -mindepth 1 -printf '%p %y %m %U:%G\n' | sort)
}

# run_stressors DIRECTORY LOG STRESSOR...: all at once.
run_stressors() {
    local directory="$1" log="$2" arguments=() stressor code=0
    shift 2
    for stressor; do
        arguments+=("--$stressor" 1)
    done
    timeout --kill-after=30 $((seconds_each + 180)) stress-ng --verify --timeout "$seconds_each" \
        --temp-path "$directory" "${arguments[@]}" >"$log" 2>&1 || code=$?
    case "$code" in
        # 2: one found something; 3 and 4: one cannot run here. The log says which.
        0 | 2 | 3 | 4) ;;
        *)
            tail -n 20 "$log"
            fail "stress-ng ended with $code"
            ;;
    esac
    grep -q 'run completed in' "$log" ||
        fail "stress-ng did not come to its end: $(tail -n 3 "$log")"
}

# judge NAME LOG: every failure must be one of the file system below, too.
judge() {
    local name="$1" log="$2" stressor
    for stressor in $(failures "$log"); do
        mkdir -p "$WORK/bare"
        run_stressors "$WORK/bare" "$WORK/bare.log" "$stressor"
        if [ -z "$(failures "$WORK/bare.log")" ]; then
            grep -E "^stress-ng: fail: *\[[0-9]*\] $stressor:" "$log" | head -n 10
            fail "$name: $stressor finds something that it does not find below"
        fi
        say "$name: $stressor fails on the file system below, too:" \
            "$(grep -m 1 fail: "$WORK/bare.log")"
    done
    for stressor in fiemap verity; do
        ! grep -q "\] $stressor: .*not supported" "$log" ||
            say "$name: no $stressor: ${impossible[$stressor]}"
    done
}

for mode in default direct; do
    options=()
    [ "$mode" = default ] || options=(--direct-io)
    mount_view "$WORK/$mode-source" "$WORK/$mode" --allow-other "${options[@]}"
    run_stressors "$WORK/$mode" "$WORK/$mode.log" "${stressors[@]}"
    judge "$mode" "$WORK/$mode.log"
    for stressor in "${alone[@]}"; do
        seconds_each=5 run_stressors "$WORK/$mode" "$WORK/$mode.$stressor.log" "$stressor"
        judge "$mode, alone" "$WORK/$mode.$stressor.log"
    done
    if [ "${OGIVE_ALL:-}" = 1 ]; then
        for stressor in "${stressors[@]}"; do
            seconds_each=5 run_stressors "$WORK/$mode" "$WORK/$mode.$stressor.log" "$stressor"
            judge "$mode, alone" "$WORK/$mode.$stressor.log"
        done
    fi
    # Most stressors remove what they make; what one that was stopped left must be the same here and
    # there. Without its flags, so that it can be removed.
    chattr -R -f -i -a "$WORK/$mode-source" || true
    names "$WORK/$mode" >"$WORK/seen"
    names "$WORK/$mode-source" >"$WORK/below"
    diff "$WORK/below" "$WORK/seen" >"$WORK/difference" ||
        fail "$mode: other files are left below than in the mount: $(head -n 5 "$WORK/difference")"
    say "$mode: ${#stressors[@]} stressors, $seconds_each s"
    unmount_view "$WORK/$mode"
done
passed
