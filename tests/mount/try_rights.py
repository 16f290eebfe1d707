"""Tries every operation on every file of a tree, and prints each result on a line.

usage: try_rights.py DIRECTORY [change]

Compares the rights of a user at two places: run it at both and compare the output.
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


def attempt(operation, name, act):
    path = os.path.join(top, name)
    try:
        result = act(path)
    except OSError as error:
        result = errno.errorcode[error.errno]
    print(operation, name, 'ok' if result is None else result)


def read(path):
    with open(path, 'rb') as file:
        return file.read(100)


def write(path, flags=os.O_WRONLY | os.O_APPEND):
    file = os.open(path, flags, 0o666)
    os.write(file, b'more\n')
    os.close(file)


def attributes(path):
    found = os.lstat(path)
    return oct(found.st_mode), found.st_uid, found.st_gid, found.st_size


def execute(path):
    return subprocess.run([path], check=False, stderr=subprocess.DEVNULL).returncode


def enter(path):
    os.chdir(path)
    os.chdir('/')


def read_all():
    for name in files + directories:
        attempt('stat', name, attributes)
        for way in (os.R_OK, os.W_OK, os.X_OK):
            attempt(f'access {way}', name, lambda path: os.access(path, way, effective_ids=True))
        attempt('getxattr', name, lambda path: os.getxattr(path, 'user.ogive'))
        attempt('listxattr', name, lambda path: 'user.ogive' in os.listxattr(path))
    for name in files:
        attempt('read', name, read)
        attempt('open to write', name, lambda path: os.close(os.open(path, os.O_RDWR)))
    for name in directories:
        attempt('list', name, lambda path: sorted(os.listdir(path)))
        attempt('enter', name, enter)
    for name in ['script', 'unreadable', 'program', 'program-x', 'public', 'own']:
        attempt('execute', name, execute)
        # The kernel's internal flag of exec, which a program must not be able to use.
        attempt('open as if to execute', name, lambda path: os.close(os.open(path, 0x20)))
    attempt('readlink', 'link', os.readlink)


def change():
    for name in files:
        attempt('setxattr', name, lambda path: os.setxattr(path, 'user.ogive', b'1'))
        attempt('append', name, write)
        attempt('truncate', name, lambda path: os.truncate(path, 3))
        attempt('touch', name, lambda path: os.utime(path))
        attempt('set times', name, lambda path: os.utime(path, (1, 10**9)))
        attempt('removexattr', name, lambda path: os.removexattr(path, 'user.ogive'))
        attempt('chmod', name, lambda path: os.chmod(path, 0o640))
        attempt('chgrp', name, lambda path: os.chown(path, -1, 4321))
        attempt('chown', name, lambda path: os.chown(path, 1235, -1))
    for name in directories:
        at = os.path.join(name, 'new')
        attempt('create', at, lambda path: write(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        attempt('create again', at, lambda path: write(path, os.O_CREAT | os.O_WRONLY))
        attempt('mkdir', at + '-d', os.mkdir)
        attempt('symlink', at + '-l', lambda path: os.symlink('x', path))
        attempt('mkfifo', at + '-p', os.mkfifo)
        attempt('link', name, lambda path: os.link(os.path.join(top, 'writable'), path + '/linked'))
        attempt('move into', name, lambda path: os.rename(path + '/new', os.path.join(top, 'open/x')))
        attempt('rmdir', at + '-d', os.rmdir)
    attempt('move over', 'sticky/foreign', lambda path: os.rename(os.path.join(top, 'open/f'), path))
    attempt('move', 'sticky/own', lambda path: os.rename(path, os.path.join(top, 'open/y')))
    for name in files + ['shared/new-l', 'open/new-p', 'sticky/new-l']:
        attempt('unlink', name, os.unlink)
    for name in directories:
        attempt('rmdir', name, os.rmdir)


read_all()
if changes:
    change()
