#!/usr/bin/env bash
# stress-ng's stressors of the class filesystem, all at once, with their own checks. A stressor that
# fails runs on the bare file system as well; if it fails there too, the mount is not at fault. At
# the end, mount and source must have the same names.
#
# Environment:
#   OGIVE_STRESS_SECONDS  how long for each mode (default: 12)
#   OGIVE_ALL             1: also each stressor alone, for five seconds
# shellcheck source=tests/mount/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite stress "stress-ng's stressors of file systems, by default and with direct I/O"
need stress-ng chattr

seconds_each="${OGIVE_STRESS_SECONDS:-12}"

# Without bind-mount, binderfs, eventfd, ioprio and procfs, which use no file of the given
# directory. Without io, which opens every mount of the machine, so that other programs cannot
# unmount.
together=(access chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dnotify dup fallocate
    fanotify fcntl fiemap file-ioctl filename flock fpunch fsize fstat getdent handle hdd
    inode-flags iomix lease link locka lockf lockofd mknod open rename symlink sync-file touch
    utime verity xattr)
# inotify runs alone. Next to the others, half of the runs waited longer than its ten seconds for
# IN_DELETE_SELF of a removed directory. It is unknown which stressor keeps that directory open.
alone=(inotify)

# Operations that the mount does not support, with reasons. These stressors must report that and not
# fail.
declare -A impossible=(
    [fiemap]='FUSE has no request for FS_IOC_FIEMAP'
    [verity]='ogive answers FS_IOC_ENABLE_VERITY with ENOTTY (docs/limits.md)'
)

# Older and newer stress-ng have other stressors.
class="$(stress-ng --class 'filesystem?' 2>&1)" || true
stressors=()
for stressor in "${together[@]}"; do
    [[ " ${class#*:} " != *" $stressor "* ]] || stressors+=("$stressor")
done
[ "${#stressors[@]}" -ge 30 ] || fail "stress-ng has only these: ${stressors[*]}"

# failures LOG: the stressors that failed.
failures() {
    sed -n 's/^stress-ng: fail: *\[[0-9]*\] \([a-z-]*\):.*/\1/p' "$1" | sort -u
}

# names DIRECTORY: all names below, with kind, mode and owner.
names() {
    (cd "$1" && find . -mindepth 1 -printf '%p %y %m %U:%G\n' | sort)
}

# run_stressors DIRECTORY LOG STRESSOR...: runs stressors at once.
run_stressors() {
    local directory="$1" log="$2" arguments=() stressor code=0
    shift 2
    for stressor; do
        arguments+=("--$stressor" 1)
    done
    timeout --kill-after=30 $((seconds_each + 180)) stress-ng --verify --timeout "$seconds_each" \
        --temp-path "$directory" "${arguments[@]}" >"$log" 2>&1 || code=$?
    case "$code" in
        # 2: a stressor failed; 3 and 4: a stressor cannot run here. The log has its name.
        0 | 2 | 3 | 4) ;;
        *)
            tail -n 20 "$log"
            fail "stress-ng ended with $code"
            ;;
    esac
    grep -q 'run completed in' "$log" ||
        fail "stress-ng did not finish: $(tail -n 3 "$log")"
}

# judge NAME LOG: every stressor that failed must also fail on the bare file system.
judge() {
    local name="$1" log="$2" stressor
    for stressor in $(failures "$log"); do
        mkdir -p "$WORK/bare"
        run_stressors "$WORK/bare" "$WORK/bare.log" "$stressor"
        if [ -z "$(failures "$WORK/bare.log")" ]; then
            grep -E "^stress-ng: fail: *\[[0-9]*\] $stressor:" "$log" | head -n 10
            fail "$name: $stressor fails here, but not on the bare file system"
        fi
        say "$name: $stressor also fails on the bare file system:" \
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
    # Stressors that were stopped leave files, which must be the same in the source. Immutable flags
    # would block their removal.
    chattr -R -f -i -a "$WORK/$mode-source" || true
    names "$WORK/$mode" >"$WORK/seen"
    names "$WORK/$mode-source" >"$WORK/below"
    diff "$WORK/below" "$WORK/seen" >"$WORK/difference" ||
        fail "$mode: mount and source have different names: $(head -n 5 "$WORK/difference")"
    say "$mode: ${#stressors[@]} stressors, $seconds_each s"
    unmount_view "$WORK/$mode"
done
passed
