# The servers of the guest, with their disks, users and networks. lib.sh sources this file.
# shellcheck shell=bash

# server_of KIND: the server's directory, which is on this machine.
server_of() {
    case "$1" in
        *-small) echo /srv/small ;;
        *-squash) echo /srv/ext4/squash ;;
        nfs*) echo /srv/ext4/nfs ;;
        smb) echo /srv/ext4/smb ;;
        *) echo "/srv/$1" ;;
    esac
}

# start_servers: starts the servers, unless they run.
start_servers() {
    [ ! -d /srv/ext4/nfs ] || return 0
    {
        make_disks
        make_users
        make_networks
        start_nfs
        start_smb
    } >"$WORK/servers" 2>&1 || fail "the servers do not start: $(tail -n 20 "$WORK/servers")"
}

make_disks() {
    local number=0 type
    sfdisk --quiet /dev/vdb <<<$'label: gpt\n,7G\n,64M\n,2G\n,2G\n,2G\n'
    mkfs.ext4 -qF /dev/vdb1
    mkfs.ext4 -qF -m 0 /dev/vdb2
    mkfs.vfat -F 32 /dev/vdb3
    mkfs.exfat -q /dev/vdb4
    mkfs.ntfs -Q -q /dev/vdb5
    for type in ext4 small vfat exfat ntfs3; do
        number=$((number + 1))
        mkdir -p "/srv/$type"
        mount -t "${type/small/ext4}" "/dev/vdb$number" "/srv/$type"
    done
    mkdir /srv/ext4/{nfs,smb,squash}
    chmod 1777 /srv/ext4/squash
}

# The suites of rights use only numbers, but NFSv4 servers need names.
make_users() {
    groupadd --gid 4321 group
    useradd --uid 1234 --groups group alice
    useradd --uid 1235 bob
}

# Two network namespaces, which look like other machines to the servers.
make_networks() {
    local number
    for number in 2 3; do
        ip netns add "other$number"
        ip link add "v$number" type veth peer name e0 netns "other$number"
        ip addr add "10.99.$number.1/24" dev "v$number"
        ip link set "v$number" up
        ip -n "other$number" addr add "10.99.$number.2/24" dev e0
        ip -n "other$number" link set e0 up
        ip -n "other$number" link set lo up
    done
}

start_nfs() {
    local number=0 options path
    for path in ext4/nfs ext4/squash small; do
        number=$((number + 1))
        options="rw,no_root_squash,sync,no_subtree_check,insecure,fsid=$number"
        [ "$path" != ext4/squash ] || options="${options/no_root/root}"
        echo "/srv/$path 127.0.0.0/8($options) 10.99.0.0/16($options)"
    done >/etc/exports
    mkdir -p /run/rpcbind /run/sendsigs.omit.d \
        /var/lib/nfs/{v4recovery,nfsdcltrack,sm,sm.bak,rpc_pipefs}
    rpcbind -w
    mount -t nfsd nfsd /proc/fs/nfsd
    mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs
    nfsdcld
    rpc.statd --no-notify
    rpc.idmapd
    rpc.mountd --manage-gids
    # After a start, the server waits for the grace period. The default is 90 s.
    echo 10 >/proc/fs/nfsd/nfsv4leasetime
    echo 10 >/proc/fs/nfsd/nfsv4gracetime
    exportfs -ra
    rpc.nfsd 8
}

start_smb() {
    cat >/etc/samba/smb.conf <<'CONFIGURATION'
[global]
  server role = standalone server
  interfaces = lo
  bind interfaces only = yes
  disable netbios = yes
  log file = /tmp/samba.log
  ea support = yes
  store dos attributes = yes
[ext]
  path = /srv/ext4/smb
  read only = no
  force user = root
[small]
  path = /srv/small
  read only = no
CONFIGURATION
    mkdir -p /run/samba /run/lock /var/log/samba
    printf 'x\nx\n' | smbpasswd -s -a root
    smbd -D
    for _ in $(seq 300); do
        ! ss --listening --tcp --numeric | grep -q ':445 ' || return 0
        sleep 0.2
    done
    return 1
}
