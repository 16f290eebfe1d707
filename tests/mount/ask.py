"""What a user asks of a tree, and what comes of it, a line each.

usage: ask.py DIRECTORY [change]
"""

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
