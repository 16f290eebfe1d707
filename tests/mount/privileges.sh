#!/usr/bin/env bash
# Changes clear set-user-ID and set-group-ID as on the bare file system. The suite tries every
# operation that changes a file, by root, the owner, a member of the group and a stranger. It does
# so for several modes, with the page cache and with direct I/O.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite privileges 'set-user-ID and set-group-ID after changes, as on the bare file system'
needs_ogive
need setpriv perl fallocate truncate

readonly OWNER=4001 GROUP=4101 OTHER_GROUP=4102
# name, user, group, supplementary groups
readonly -a USERS=('root 0 0 0'
    "owner $OWNER $GROUP $GROUP,$OTHER_GROUP" "outsider $OWNER 4109 4109"
    "member 4002 4108 $GROUP" 'stranger 4003 4107 4107')
readonly -a MODES=(6777 4777 2777 6767 2767 0777)
operations=(write append truncate extend allocate punch zero copy mode group owner same)
command -v setfacl >/dev/null && operations+=(list)

# act OPERATION FILE OTHER: a script with the operations, which each user runs.
cat >"$WORK/act" <<'ACT'
#!/usr/bin/env bash
case "$1" in
    write) printf x | dd of="$2" bs=1 seek=10 conv=notrunc status=none ;;
    append) printf x >>"$2" ;;
    truncate) truncate -s 5 "$2" ;;
    extend) truncate -s 9000 "$2" ;;
    allocate) fallocate -o 8192 -l 4096 "$2" ;;
    punch) fallocate -p -o 0 -l 4096 "$2" ;;
    zero) fallocate -z -o 0 -l 4096 "$2" ;;
    copy) perl -e 'open my $from, "<", $ARGV[1] or die; open my $to, "+<", $ARGV[0] or die;
        syscall(326, fileno($from), 0, fileno($to), 0, 100, 0) == 100 or die "$!"' "$2" "$3" ;;
    mode) chmod g+s "$2" ;;
    group) chgrp 4102 "$2" ;;
    owner) chown 4005 "$2" ;;
    same) perl -e 'chown -1, -1, $ARGV[0] or die "$!"' "$2" ;;
    list) setfacl -m u:4006:rw "$2" ;;
esac
ACT
chmod 755 "$WORK/act"

# outcome DIRECTORY OPERATION MODE USER GROUP GROUPS: performs an operation on a new file, and
# prints the exit code and the file's attributes.
outcome() {
    local directory="$1" operation="$2" mode="$3" file="$1/file" code=0
    rm -f "$file"
    head -c 8192 /dev/zero >"$file"
    chown "$OWNER:$GROUP" "$file"
    chmod "$mode" "$file"
    # The kernel caches these attributes, and the change must invalidate them.
    stat "$file" >/dev/null
    setpriv --reuid "$4" --regid "$5" --groups "$6" -- \
        "$WORK/act" "$operation" "$file" "$directory/other" 2>/dev/null || code=1
    # chown(-1, -1) by a user who does not own the file may fail on the bare file system. A FUSE
    # request does not show this case: the mount reports success and changes nothing.
    case "$operation $4" in
        "same 0" | "same $OWNER") ;;
        same\ *) code=- ;;
    esac
    printf '%s %s' "$code" "$(stat -c '%a %u %g %s' "$file")"
}

compare() {
    local user name uid gid groups operation mode bare seen below wrong=0 cases=0
    for user in "${USERS[@]}"; do
        read -r name uid gid groups <<<"$user"
        for operation in "${operations[@]}"; do
            for mode in "${MODES[@]}"; do
                bare="$(outcome "$WORK/bare" "$operation" "$mode" "$uid" "$gid" "$groups")"
                seen="$(outcome "$WORK/mount" "$operation" "$mode" "$uid" "$gid" "$groups")"
                below="$(stat -c '%a %u %g %s' "$WORK/source/file")"
                cases=$((cases + 1))
                if [ "$bare" != "$seen" ] || [ "${seen#* }" != "$below" ]; then
                    wrong=$((wrong + 1))
                    say "$operation of $mode by $name: bare '$bare', mount '$seen', source '$below'"
                fi
            done
        done
    done
    [ "$wrong" -eq 0 ] || fail "$wrong of $cases cases differ ($*)"
    say "$cases cases as on the bare file system ($*)"
}

mkdir -m 777 "$WORK/bare" "$WORK/source"
for directory in bare source; do
    head -c 100 /dev/zero >"$WORK/$directory/other"
    chmod 644 "$WORK/$directory/other"
done
for options in '' '--direct-io'; do
    # shellcheck disable=SC2086 # one option or none
    mount_view "$WORK/source" "$WORK/mount" --allow-other --suid $options
    compare "${options:-page cache}"
    unmount_view "$WORK/mount"
done
passed
