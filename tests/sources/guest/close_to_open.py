"""Counts the opens by other clients that do not see bytes written through a view and closed.

usage: close_to_open.py VIEW OTHER SERVER
"""

import errno
import mmap
import os
import sys
import time

view, *others = sys.argv[1:]


def get(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except OSError as error:
        return errno.errorcode[error.errno]


def over(data, path):
    with open(path, 'wb') as file:
        file.write(data)


def in_place(data, path):
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    os.pwrite(file, data, 0)
    os.close(file)


def synced(data, path):
    """Syncs, and leaves the file open until the next round."""
    global kept_open
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    os.pwrite(file, data, 0)
    os.fsync(file)
    kept_open = os.fdopen(file)


def renamed(data, path):
    over(data, f'{path}.new')
    os.rename(f'{path}.new', path)


def mapped(data, path):
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, len(data))
    with mmap.mmap(file, len(data)) as pages:
        pages[:] = data
        pages.flush()
    os.close(file)


for write in (over, in_place, synced, renamed, mapped):
    late = 0
    for number in range(10):
        expected = b'%08d' % number * 3000
        write(expected, f'{view}/{write.__name__}')
        for place in others:
            if get(f'{place}/{write.__name__}') != expected:
                late += 1
                began = time.monotonic()
                while get(f'{place}/{write.__name__}') != expected:
                    if time.monotonic() > began + 10:
                        break
                    time.sleep(0.05)
                print(f'at {place} {time.monotonic() - began:.1f} s late', file=sys.stderr)
    print(write.__name__, 'not seen at once:', late, 'of', 10 * len(others), flush=True)
