#!/usr/bin/env bash
# Servers that stop during reads and writes, and start again. No acknowledged line is lost, programs
# wait only for the server, and the mount recovers by itself.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite servers-that-stop 'servers that stop and start again, under reads and writes'
export OGIVE

readonly SHOWN=yes
readonly STOP_NFS='rpc.nfsd 0' START_NFS='rpc.nfsd 8'
readonly STOP_SMB='pkill -x smbd; sleep 1' START_SMB='smbd -D'

# stopped STOP START hard|errors: see stopped_server.py.
stopped() {
    timeout 500 python3 "$GUEST/stopped_server.py" "$VIEW" "$SOURCE" "$SERVER" "$@" 2>&1 |
        tee "$WORK/stopped"
    [ "${PIPESTATUS[0]}" -eq 0 ] || fail 'stopped_server.py did not finish'
    ! grep -q '^WRONG' "$WORK/stopped"
}

# export_removed: removes the export and restores it. An open file is served from memory meanwhile.
export_removed() {
    local file code=0
    head -c 1M /dev/zero | tr '\0' 1 >"$SERVER/f"
    echo two >"$SERVER/g"
    cat "$VIEW/f" >/dev/null
    exec {file}<"$VIEW/f"
    exportfs -u "127.0.0.0/8:$(server_of "$kind")"
    exportfs -f
    sleep 1
    timeout 60 cat "$VIEW/g" || code=$?
    [ "$code" -ne 124 ] || fail 'a read of the removed export hangs'
    [ "$code" -ne 0 ] || fail 'a read of the removed export succeeds'
    timeout 60 "$OGIVE" stat "$VIEW" 1 1
    # A cached read sends no request to the server, neither for attributes nor for the size.
    [ "$(timeout 60 dd bs=4 count=1 status=none <&"$file")" = 1111 ] ||
        fail 'an open file is not served from memory'
    exec {file}<&-
    exportfs -ra
    exportfs -f
    eventually 60 'the view is back' cmp "$VIEW/g" "$SERVER/g"
    echo more >"$VIEW/g"
    [ "$(cat "$SERVER/g")" = more ] || fail 'a write does not reach the server'
    eventually 60 'the mount reports that the source is back' grep -q '"source_gone": null' \
        "$VIEW/.ogive/mount"
}

# terminated: the daemon gets SIGTERM while the server is stopped.
terminated() {
    local daemon
    daemon="$(daemon_of "$VIEW")"
    echo one >"$SERVER/f"
    rpc.nfsd 0
    cat "$VIEW/f" >/dev/null 2>&1 &
    sleep 1
    kill -TERM "$daemon"
    eventually 60 'the view is unmounted' is_not_mounted "$VIEW"
    rpc.nfsd 8
    eventually 120 'the daemon ends once the server is back' has_gone "$daemon"
    wait
}

while read -r kind how options modes; do
    open_source "$kind" "${options#-}"
    for mode in ${modes:-default --direct-io}; do
        mode="${mode/=/ }"
        view_of "$mode"
        case "$kind" in
            nfs*) row "$kind $how $options $mode" stopped "$STOP_NFS" "$START_NFS" "$how" ;;
            smb) row "$kind $how $options $mode" stopped "$STOP_SMB" "$START_SMB" "$how" ;;
        esac
        rm -rf "${SERVER:?}"/*
        unmount_view "$VIEW"
    done
    close_source
done <<'ROWS'
nfs4.2 hard -
nfs3 hard -
nfs4.2 errors soft,timeo=20,retrans=1 default
nfs4.2 errors - --origin-timeout=3
smb errors - default
ROWS

for kind in nfs4.2 nfs3; do
    open_source "$kind"
    view_of default
    row "$kind: the export is removed and restored" export_removed
    exportfs -ra
    exportfs -f
    unmount_view "$VIEW"
    view_of default
    row "$kind: the daemon is terminated while the server is stopped" terminated
    close_source
done
verdict
