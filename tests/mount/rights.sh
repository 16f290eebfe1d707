#!/usr/bin/env bash
# What other users may do where the source decides: as on the source itself, for each of them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite rights 'three users on a source that decides itself what each of them may do'
needs_ogive
need setpriv setfacl python3

readonly ALICE=1234 BOB=1235 GROUP=4321

# as USER COMMAND...: alice is in a group, bob in none.
as() {
    local user="$1"
    shift
    case "$user" in
        alice) setpriv --reuid $ALICE --regid $ALICE --groups $GROUP "$@" ;;
        bob) setpriv --reuid $BOB --regid $BOB --clear-groups "$@" ;;
        root) "$@" ;;
    esac
}

# A python that other users may run.
PYTHON=''
for one in $(type -aP python3); do
    ! as bob "$one" -c '' 2>/dev/null || { PYTHON="$one" && break; }
done
[ -n "$PYTHON" ] || skip 'no python3 that other users may run'

# tree DIRECTORY: something for everybody.
tree() {
    local name
    mkdir -p "$1"/{closed,home/sub,dd,shared,sticky,open}
    for name in own foreign public grouped writable denied given closed/f home/f dd/f open/f \
        sticky/foreign sticky/own; do
        echo "$name" >"$1/$name"
    done
    ln -s home/f "$1/link"
    printf '#!/bin/sh\nexit 0\n' | tee "$1/script" >"$1/unreadable"
    cp "$(type -P true)" "$1/program"
    cp "$(type -P true)" "$1/program-x"
    chmod 755 "$1" "$1"/{dd,script,program}
    chmod 644 "$1"/{public,denied,closed/f,home/f,dd/f}
    chmod 600 "$1"/{own,foreign,given}
    chmod 640 "$1/grouped"
    chmod 666 "$1/writable"
    chmod 711 "$1"/{program-x,unreadable}
    chown -R $ALICE:$ALICE "$1"/{own,home,sticky/own}
    chgrp -R $GROUP "$1"/{grouped,shared}
    chmod 700 "$1"/{closed,home}
    chmod 2770 "$1/shared"
    chmod 1777 "$1/sticky"
    chmod 777 "$1/open"
    setfacl -m u:$ALICE:--- "$1/denied" "$1/dd"
    setfacl -m u:$ALICE:rw "$1/given"
    python3 -c 'import os, sys
for path in sys.argv[1:]:
    os.setxattr(path, "user.ogive", b"1")' "$1"/{own,foreign,public,grouped,denied,closed,home}
}

# What a user asks of a tree, and what comes of it, a line each.
cat >"$WORK/ask.py" <<'ASK'
import errno
import os
import subprocess
import sys

top, changes = sys.argv[1], len(sys.argv) > 2
files = ['own', 'foreign', 'public', 'grouped', 'writable', 'denied', 'given', 'closed/f', 'home/f',
         'dd/f', 'open/f', 'sticky/foreign', 'sticky/own', 'link', 'program-x', 'missing',
         'closed/missing', 'home/missing']
directories = ['closed', 'home', 'home/sub', 'dd', 'shared', 'sticky', 'open', '.']
os.umask(0o027)


def say(what, where, ask):
    path = os.path.join(top, where)
    try:
        answer = ask(path)
    except OSError as error:
        answer = errno.errorcode[error.errno]
    print(what, where, 'ok' if answer is None else answer)


def read(path):
    with open(path, 'rb') as file:
        return file.read(100)


def write(path, flags=os.O_WRONLY | os.O_APPEND):
    file = os.open(path, flags, 0o666)
    os.write(file, b'more\n')
    os.close(file)


def shown(path):
    found = os.lstat(path)
    return oct(found.st_mode), found.st_uid, found.st_gid, found.st_size


def execute(path):
    return subprocess.run([path], check=False, stderr=subprocess.DEVNULL).returncode


def enter(path):
    os.chdir(path)
    os.chdir('/')


def look():
    for name in files + directories:
        say('stat', name, shown)
        for way in (os.R_OK, os.W_OK, os.X_OK):
            say(f'access {way}', name, lambda path: os.access(path, way, effective_ids=True))
        say('getxattr', name, lambda path: os.getxattr(path, 'user.ogive'))
        say('listxattr', name, lambda path: 'user.ogive' in os.listxattr(path))
    for name in files:
        say('read', name, read)
        say('open to write', name, lambda path: os.close(os.open(path, os.O_RDWR)))
    for name in directories:
        say('list', name, lambda path: sorted(os.listdir(path)))
        say('enter', name, enter)
    for name in ['script', 'unreadable', 'program', 'program-x', 'public', 'own']:
        say('execute', name, execute)
        # A flag of the kernel's own, which no program can set.
        say('open as if to execute', name, lambda path: os.close(os.open(path, 0x20)))
    say('readlink', 'link', os.readlink)


def change():
    for name in files:
        say('setxattr', name, lambda path: os.setxattr(path, 'user.ogive', b'1'))
        say('append', name, write)
        say('truncate', name, lambda path: os.truncate(path, 3))
        say('touch', name, lambda path: os.utime(path))
        say('set times', name, lambda path: os.utime(path, (1, 10**9)))
        say('removexattr', name, lambda path: os.removexattr(path, 'user.ogive'))
        say('chmod', name, lambda path: os.chmod(path, 0o640))
        say('chgrp', name, lambda path: os.chown(path, -1, 4321))
        say('chown', name, lambda path: os.chown(path, 1235, -1))
    for name in directories:
        at = os.path.join(name, 'new')
        say('create', at, lambda path: write(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        say('create again', at, lambda path: write(path, os.O_CREAT | os.O_WRONLY))
        say('mkdir', at + '-d', os.mkdir)
        say('symlink', at + '-l', lambda path: os.symlink('x', path))
        say('mkfifo', at + '-p', os.mkfifo)
        say('link', name, lambda path: os.link(os.path.join(top, 'writable'), path + '/linked'))
        say('move into', name, lambda path: os.rename(path + '/new', os.path.join(top, 'open/x')))
        say('rmdir', at + '-d', os.rmdir)
    say('move over', 'sticky/foreign', lambda path: os.rename(os.path.join(top, 'open/f'), path))
    say('move', 'sticky/own', lambda path: os.rename(path, os.path.join(top, 'open/y')))
    for name in files + ['shared/new-l', 'open/new-p', 'sticky/new-l']:
        say('unlink', name, os.unlink)
    for name in directories:
        say('rmdir', name, os.rmdir)


look()
if changes:
    change()
ASK

# state DIRECTORY: everything that is in it.
state() {
    (cd "$1" && find . -mindepth 1 -printf '%P %y %m %U %G %s %n\n' | sort)
}

# compare NAME: what the view has said, and what the source has.
compare() {
    diff "$WORK/bare" "$WORK/asked" >"$WORK/differences" ||
        fail "$1: the view (>) differs from the source (<): $(head -n 20 "$WORK/differences")"
}

mkdir "$WORK/source"
chmod 755 "$WORK/source"
mount_view "$WORK/source" "$WORK/below" --allow-other
grep -q '"permissions": "kernel"' "$WORK/below/.ogive/mount" || fail 'a directory here is asked'

# asked_as_the_source OPTION...: on a view of a view, whose type is one of FUSE.
asked_as_the_source() {
    local user number=0
    mount_view "$WORK/below" "$WORK/view" --allow-other "$@" 2>"$WORK/log"
    grep -q '"permissions": "source"' "$WORK/view/.ogive/mount" || fail 'the source is not asked'
    grep -q 'fuse.ogive is asked in the name of each user' "$WORK/log" || fail 'the log is silent'
    tree "$WORK/below/shared-by-all"
    # Each after another who has just been there, and has everything in the caches.
    for user in root bob alice bob root alice; do
        as "$user" "$PYTHON" "$WORK/ask.py" "$WORK/below/shared-by-all" >"$WORK/bare"
        as "$user" "$PYTHON" "$WORK/ask.py" "$WORK/view/shared-by-all" >"$WORK/asked"
        compare "$user"
    done
    grep -q '^read denied EACCES' "$WORK/bare" || fail 'alice may read what is denied to her'
    grep -q "^read given b'given" "$WORK/bare" || fail 'alice may not read what is given to her'
    say "$(wc -l <"$WORK/bare") questions of each user are answered as by the source"
    for user in alice bob root; do
        number=$((number + 1))
        tree "$WORK/below/bare.$number"
        tree "$WORK/below/asked.$number"
        as "$user" "$PYTHON" "$WORK/ask.py" "$WORK/below/bare.$number" change >"$WORK/bare"
        as "$user" "$PYTHON" "$WORK/ask.py" "$WORK/view/asked.$number" change >"$WORK/asked"
        compare "$user"
        state "$WORK/below/bare.$number" >"$WORK/bare"
        state "$WORK/below/asked.$number" >"$WORK/asked"
        compare "what is left by $user"
    done
    say 'and so are their changes'
    rm -rf "$WORK/below/"{shared-by-all,bare.*,asked.*}
}

# control_is_guarded: by its modes, as everywhere.
control_is_guarded() {
    local control="$WORK/view/.ogive"
    as bob grep -q '^hits' "$control/arcstats" || fail 'bob cannot read counters'
    as bob ls "$control" >/dev/null || fail 'bob cannot list the control directory'
    expect_failure 'Permission denied' as bob cat "$control/objects"
    expect_failure 'Permission denied' as bob sh -c "echo all >'$control/reclaim'"
    expect_failure 'Permission denied' as bob truncate -s 0 "$control/arc_max"
    expect_failure 'Permission denied' as bob mkdir "$control/new"
    as bob test -r "$control/arc_max" || fail 'bob may not read a control file'
    ! as bob test -w "$control/arc_max" || fail 'bob may write a control file'
    echo all >"$control/reclaim" || fail 'root cannot write a control file'
    cat "$control/objects" >/dev/null || fail 'root cannot read what is cached'
    chmod 700 "$WORK/below"
    eventually 60 'the mode of the root is seen' sh -c "[ \"\$(stat -c %a '$WORK/view')\" = 700 ]"
    expect_failure 'Permission denied' as bob cat "$control/arcstats"
    chmod 755 "$WORK/below"
    say 'the control directory is guarded by its modes'
}

asked_as_the_source
control_is_guarded
unmount_view "$WORK/view"
asked_as_the_source --direct-io --metadata-ttl 60
unmount_view "$WORK/view"

expect_failure '--passthrough' "$OGIVE" mount --allow-other --passthrough "$WORK/below" "$WORK/view"
mount_view "$WORK/below" "$WORK/view" --allow-other --trust-permissions 2>"$WORK/log"
grep -q '"permissions": "kernel"' "$WORK/view/.ogive/mount" || fail 'permissions are not trusted'
grep -q 'because of --trust-permissions' "$WORK/log" || fail 'the log does not say why'
unmount_view "$WORK/view"
say 'whoever trusts mode bits has them checked by the kernel'

# Below a source of this machine it is mode bits that count, and the log says so.
mkdir "$WORK/local" "$WORK/local/far"
mount --bind "$WORK/below" "$WORK/local/far"
remember_mount "$WORK/local/far"
mount_view "$WORK/local" "$WORK/view" --allow-other --log-file "$WORK/log" --log-format json
ls "$WORK/view/far" >"$WORK/asked"
grep -q '"event":"permissions_by_mode".*fuse.ogive at ' "$WORK/log" || fail 'the log does not warn'
unmount_view "$WORK/view"
umount "$WORK/local/far"
unmount_view "$WORK/below"
passed
