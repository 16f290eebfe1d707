"""Opens names repeatedly while another client changes them, and reports stale handles.

usage: stale_handles.py VIEW BARE CHANGER SECONDS

The directories are the same one: in the view, at another client, and at the client that changes it.
Each kind of change is made to a name that is read four times a second, and to one that is read
seldom. Prints a line for each fault. ESTALE at any open is a fault; so is an old file at the end, if
the other client has the new one.
"""

import errno
import os
import sys
import time

view, bare, changer = sys.argv[1:4]
seconds = float(sys.argv[4])


def get(directory, name):
    try:
        with open(f'{directory}/{name}', encoding='ascii') as file:
            return file.read()
    except OSError as error:
        return errno.errorcode[error.errno]


def put(path, text):
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)


def replaced(path):
    put(f'{path}.n', 'new')
    os.rename(f'{path}.n', path)


def recreated(path):
    os.unlink(path)
    put(path, 'new')


def retargeted(path):
    os.unlink(path)
    os.symlink('target-new', path)


CHANGES = {replaced: 'new', recreated: 'new', os.unlink: 'ENOENT', retargeted: 'new'}


def read_all(names, log):
    """Reads all names in both directories, and appends the results to the log."""
    for name in names:
        for way, directory in (('view', view), ('bare', bare)):
            log.setdefault((name, way), []).append(get(directory, name))


def is_over(names, log):
    return all(log[name, 'view'][-1] == CHANGES[change] for name, change in names.items())


def trial(label, pause):
    """Reads a set of names with pauses, changes them, and reads them until all are new."""
    names = {}
    for word in ('old', 'new'):
        put(f'{changer}/target-{word}', word)
    for change in CHANGES:
        name = f'{label}-{change.__name__}'
        try:
            if change is retargeted:
                os.symlink('target-old', f'{changer}/{name}')
            else:
                put(f'{changer}/{name}', 'old')
        except OSError as error:
            # The source has no symbolic links.
            if change is not retargeted or error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
                raise
            continue
        names[name] = change
    for _ in range(4):
        read_all(names, {})
        time.sleep(pause)
    for name, change in names.items():
        change(f'{changer}/{name}')
    log, began = {}, time.monotonic()
    read_all(names, log)
    while time.monotonic() - began < 4 or not is_over(names, log):
        if time.monotonic() - began > seconds:
            break
        time.sleep(0.1)
        read_all(names, log)
    # The view may be a second later than the other client.
    time.sleep(2)
    last = {name: get(view, name) for name in names}
    for name, change in names.items():
        seen = log[name, 'view']
        if 'ESTALE' in seen:
            print(
                f'{name}: ESTALE at {seen.count("ESTALE")} of {len(seen)} opens, '
                f'bare at {log[name, "bare"].count("ESTALE")}'
            )
        if last[name] != CHANGES[change] == log[name, 'bare'][-1]:
            print(f'{name}: {last[name]} in the end, bare {CHANGES[change]}')


trial('often', 0.25)
trial('seldom', 2.5)
