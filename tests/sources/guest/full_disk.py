"""Prints the errors of a full disk, a line for each way of writing, for comparison.

usage: full_disk.py DIRECTORY

The disk is too small for the written bytes. A line has the errors up to the return of `close`, and
whether the bytes synced before them are there. The first call that fails is not compared.
"""

import errno
import os
import sys
import time

WAYS = {
    'close alone': (1 << 20, False, False),
    'fsync at the end': (1 << 20, False, True),
    'fsync after each': (1 << 20, True, True),
    'small writes': (4096, False, False),
}


def fill(path, chunk, each, last):
    """Returns the errors and the number of synced bytes."""
    failed, written, synced = [], 0, 0
    file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)

    def attempt(call, *arguments):
        try:
            return call(*arguments)
        except OSError as error:
            failed.append(errno.errorcode[error.errno])
            return None

    while written < 90 << 20:
        count = attempt(os.write, file, b'z' * chunk)
        if each:
            attempt(os.fsync, file)
        if failed:
            break
        written += count
        synced = written if each else 0
    if last and not failed:
        attempt(os.fsync, file)
    attempt(os.close, file)
    return failed, synced


def has_room():
    """Waits until the server has freed the room of the last file."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = os.statvfs(sys.argv[1])
        if found.f_bavail * found.f_frsize > 40 << 20:
            return True
        time.sleep(0.5)
    return False


for name, way in WAYS.items():
    if not has_room():
        sys.exit(f'{name}: the room of the last file is not free after a minute')
    path = f'{sys.argv[1]}/full'
    failed, synced = fill(path, *way)
    kept = os.stat(path).st_size >= synced
    print(name, sorted(set(failed)) or 'no error', 'kept' if kept else 'LOST')
    # After a failed close, an NFS client keeps the file open, so unlink alone frees no room.
    os.truncate(path, 0)
    os.unlink(path)
