"""Opens names again and again while their files are changed elsewhere: is one ever stale?

usage: stale.py VIEW BARE CHANGER SECONDS

All directories are the same one, through the view, another client and the changer. Every kind of
change is made to a name that is read four times a second, and to one that is read now and then. Each
fault is a line: ESTALE at any open, or not the new file in the end although the other client has it.
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


def look(names, log):
    """Opens all of them by both paths, and notes the results."""
    for name in names:
        for way, directory in (('view', view), ('bare', bare)):
            log.setdefault((name, way), []).append(get(directory, name))


def is_over(names, log):
    return all(log[name, 'view'][-1] == CHANGES[change] for name, change in names.items())


def trial(label, pause):
    """Changes a set of names that have been read with a pause between, and follows them."""
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
            # The source itself has no links.
            if change is not retargeted or error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
                raise
            continue
        names[name] = change
    for _ in range(4):
        look(names, {})
        time.sleep(pause)
    for name, change in names.items():
        change(f'{changer}/{name}')
    log, began = {}, time.monotonic()
    look(names, log)
    while time.monotonic() - began < 4 or not is_over(names, log):
        if time.monotonic() - began > seconds:
            break
        time.sleep(0.1)
        look(names, log)
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
