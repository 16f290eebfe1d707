# Functions of the source suites, in addition to those of the mount suites. Suites source this file.
#
# A suite starts with
#     source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
#     guest_suite NAME "what it does"
# and ends with `verdict`. Outside a guest, this file starts one (boot.sh) that runs the suite. In
# the guest, `guest_suite` starts the servers. `wrong` reports a fault and continues with the next
# kind of source; `fail` ends the suite.
#
# Kinds of sources: nfs4.2, nfs4.1, nfs4.0, nfs3, smb, vfat, exfat, ntfs3. With -squash, the server
# maps root to `nobody`. With -small, its disk has 64 MiB.
# shellcheck shell=bash

GUEST="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[ -n "${OGIVE_GUEST:-}" ] || exec bash "$GUEST/../boot.sh" "$(basename "$0" .sh)"
source "$GUEST/../../mount/lib.sh"
source "$GUEST/servers.bash"

WRONG=0
FOLDERS=0

# guest_suite NAME TEXT: begins a suite and starts the servers.
guest_suite() {
    suite "sources-$1" "$2"
    start_servers
}

# wrong TEXT...: reports a fault. The suite continues, and `verdict` fails it.
wrong() {
    printf '[%s] FAILED: %s\n' "$SUITE_NAME" "$*"
    WRONG=$((WRONG + 1))
}

# verdict: the last line of a suite.
verdict() {
    [ "$WRONG" -eq 0 ] || fail "$WRONG faults"
    passed
}

# row TEXT COMMAND...: one check of a suite, which holds if the command succeeds. The command runs
# in a subshell that ends with the first failure. Its output is printed if the check fails, or if
# SHOWN is set.
row() {
    local text="$1" started="$SECONDS" output="$WORK/row" code
    shift
    # Within `if` or `||`, bash ignores `set -e`.
    set +e
    (
        set -e
        "$@"
    ) >"$output" 2>&1
    code=$?
    set -e
    if [ "$code" -eq 0 ]; then
        say "$(printf '%-56s held %5d s' "$text" $((SECONDS - started)))"
        [ -z "${SHOWN:-}" ] || cat "$output"
    else
        wrong "$text: $(tail -c 6000 "$output")"
    fi
}

# is_empty DIRECTORY: for `eventually`.
is_empty() {
    [ -z "$(find "$1" -mindepth 1 | tee /dev/stderr)" ]
}

# mount_client KIND MNT [OPTIONS]: mounts the server's directory on this machine.
mount_client() {
    local share=ext
    mkdir -p "$2"
    [ "$1" != smb-small ] || share=small
    case "$1" in
        nfs*) mount_nfs 127.0.0.1 "$@" ;;
        smb*)
            mount -t cifs -o "username=root,password=x,nosharesock${3:+,$3}" \
                "//127.0.0.1/$share" "$2"
            ;;
        *) mount --bind "$(server_of "$1")" "$2" ;;
    esac
    remember_mount "$2"
}

# mount_nfs ADDRESS KIND MNT [OPTIONS]: mounts NFS; no mount shares its cache with another.
mount_nfs() {
    local version="${2#nfs}" options
    options="vers=${version%-*},nosharecache,port=2049"
    [ "${version%-*}" != 3 ] || options='vers=3,nosharecache,nolock'
    mount -t nfs -o "$options${4:+,$4}" "$1:$(server_of "$2")" "$3"
}

# mount_other NUMBER KIND MNT [OPTIONS]: mounts as another machine would. NFS gets another network
# namespace (2 or 3) and host name, SMB another session.
mount_other() {
    case "$2" in
        nfs*)
            mkdir -p "$3"
            # shellcheck disable=SC2016 # the inner shell expands it
            HOST="other$1" ADDRESS="10.99.$1.1" MOUNT="$(declare -f mount_nfs server_of)" \
                unshare --uts bash -c 'hostname "$HOST"
                    exec nsenter --net="/run/netns/$HOST" bash -c "$MOUNT
                        mount_nfs $ADDRESS \"\$@\"" - "$@"' - "${@:2}"
            remember_mount "$3"
            ;;
        *) mount_client "${@:2}" ;;
    esac
}

# open_source KIND [OPTIONS]: mounts a source of a kind, with a new folder NAME. SOURCE is the
# folder at this machine's client, SERVER the folder on the server.
open_source() {
    FOLDERS=$((FOLDERS + 1))
    NAME="$FOLDERS-$1"
    mount_client "$1" "$WORK/client-$NAME" "${2:-}"
    SOURCE="$WORK/client-$NAME/$NAME"
    SERVER="$(server_of "$1")/$NAME"
    VIEW="$WORK/view-$NAME"
    # Servers free the room of removed files with a delay.
    eventually 60 'the server has room' mkdir -p "$SERVER"
}

# open_others KIND [OPTIONS]: two other clients of the open source: OTHER and THIRD.
open_others() {
    mount_other 2 "$1" "$WORK/other-$NAME" "${2:-}"
    mount_other 3 "$1" "$WORK/third-$NAME" "${2:-}"
    # shellcheck disable=SC2034 # the suites use them
    OTHER="$WORK/other-$NAME/$NAME" THIRD="$WORK/third-$NAME/$NAME"
}

# close_source: unmounts everything, and removes the folder.
close_source() {
    local mount
    cd /
    for mount in "${MOUNTED[@]}"; do
        force_unmount "$mount"
    done
    MOUNTED=()
    rm -rf "$SERVER"
}

# view_of MODE [OPTION...]: mounts a view of the open source at $VIEW. MODE is one string of
# options, or `default`.
view_of() {
    local words=()
    [ "$1" = default ] || read -ra words <<<"$1"
    mount_view "$SOURCE" "$VIEW" --log-file "$WORK/log" "${words[@]}" "${@:2}"
}

# operations MNT: the operations of an NFS mount with their counts, a line each.
operations() {
    awk -v at="$1" '$1 == "device" { here = ($5 == at); named = 0 }
        here && /per-op/ { named = 1; next }
        here && named && NF > 2 { sub(":", "", $1); print $1, $2 }' /proc/self/mountstats
}

# operations_since FILE MNT: the increase of the counts since FILE was written: the sum, then by
# name. Lease renewals and returns of delegations do not count, because the client does them on its
# own.
operations_since() {
    operations "$2" | awk 'NR == FNR { before[$1] = $2; next }
        /^(SEQUENCE|RENEW|DELEGRETURN) / { next }
        { more = $2 - before[$1]; all += more; if (more) by = by " " $1 "=" more }
        END { print all + 0 by }' "$1" -
}
