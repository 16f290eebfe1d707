"""Measures how soon each reader sees each kind of change by other clients.

usage: change_delays.py TTL READER=DIRECTORY... -- CHANGER=DIRECTORY...

All directories are the same one, through different mounts. The first reader is the bare source, the
others are views of it. TTL is the number of seconds that the source's client caches names and
attributes. The program prints all delays, and a line `WRONG` for each that is too long.

An open of a known name may be late by 1.5 s after the bare source. Names and attributes may be late
by 1.5 s after the bare source or the TTL. A change that the bare source never shows is ignored.
"""

import errno
import os
import sys
import time

split = sys.argv.index('--')
client_ttl = float(sys.argv[1])
readers = dict(argument.split('=', 1) for argument in sys.argv[2:split])
changers = dict(argument.split('=', 1) for argument in sys.argv[split + 1 :])
SECONDS = 75
OLD, NEW = b'A' * 9000, b'B' * 9000


def put(path, data):
    with open(path, 'wb') as file:
        file.write(data)


def contents(directory, name='f'):
    with open(f'{directory}/{name}', 'rb') as file:
        return file.read()


def names(directory):
    return sorted(os.listdir(directory))


def one_file(directory):
    put(f'{directory}/f', OLD)


def in_place(directory, data=NEW):
    file = os.open(f'{directory}/f', os.O_WRONLY)
    os.pwrite(file, data, 0)
    os.close(file)


def put_time_back(directory, change):
    found = os.stat(f'{directory}/f')
    change(directory)
    os.utime(f'{directory}/f', ns=(found.st_atime_ns, found.st_mtime_ns))


def replace(directory):
    put(f'{directory}/new', NEW)
    os.rename(f'{directory}/new', f'{directory}/f')


def remove_and_create(directory):
    os.unlink(f'{directory}/f')
    put(f'{directory}/f', NEW)


def twice(directory):
    in_place(directory, OLD[:50] + NEW[50:])
    in_place(directory)


def become_directory(directory):
    os.unlink(f'{directory}/f')
    os.mkdir(f'{directory}/f')


def two_directories(directory):
    for name, data in (('x', OLD), ('y', NEW)):
        os.mkdir(f'{directory}/{name}')
        put(f'{directory}/{name}/f', data)


def exchange_directories(directory):
    os.rename(f'{directory}/x', f'{directory}/z')
    os.rename(f'{directory}/y', f'{directory}/x')


def link(directory):
    put(f'{directory}/a', OLD)
    put(f'{directory}/b', NEW)
    os.symlink('a', f'{directory}/f')


def retarget(directory):
    os.unlink(f'{directory}/f')
    os.symlink('b', f'{directory}/f')


# Kind: whether a known name is opened, the preparation, the change, the observation, the new value.
KINDS = {
    'same size': (True, one_file, in_place, contents, NEW),
    'same size, time put back': (
        True,
        one_file,
        lambda at: put_time_back(at, in_place),
        contents,
        NEW,
    ),
    'twice in a tick': (True, one_file, twice, contents, NEW),
    'replaced': (True, one_file, replace, contents, NEW),
    'replaced, time put back': (True, one_file, lambda at: put_time_back(at, replace), contents, NEW),
    'removed and created': (True, one_file, remove_and_create, contents, NEW),
    'grown': (True, one_file, lambda at: put(f'{at}/f', OLD + NEW), contents, OLD + NEW),
    'cut': (True, one_file, lambda at: os.truncate(f'{at}/f', 100), contents, OLD[:100]),
    'removed': (True, one_file, lambda at: os.unlink(f'{at}/f'), contents, 'ENOENT'),
    'became a directory': (False, one_file, become_directory, lambda at: names(f'{at}/f'), []),
    'created': (False, lambda _: None, one_file, contents, OLD),
    'listing, one more': (False, one_file, lambda at: put(f'{at}/g', OLD), names, ['f', 'g']),
    'listing, one less': (False, one_file, lambda at: os.unlink(f'{at}/f'), names, []),
    'listing, renamed': (False, one_file, lambda at: os.rename(f'{at}/f', f'{at}/g'), names, ['g']),
    'size': (
        False,
        one_file,
        lambda at: os.truncate(f'{at}/f', 7),
        lambda at: os.stat(f'{at}/f').st_size,
        7,
    ),
    'mode': (
        False,
        one_file,
        lambda at: os.chmod(f'{at}/f', 0o400),
        lambda at: oct(os.stat(f'{at}/f').st_mode),
        '0o100400',
    ),
    'sizes in a listing': (
        False,
        one_file,
        lambda at: os.truncate(f'{at}/f', 7),
        lambda at: [entry.stat().st_size for entry in os.scandir(at)],
        [7],
    ),
    'link retargeted': (False, link, retarget, contents, NEW),
    'directory on the path': (
        False,
        two_directories,
        exchange_directories,
        lambda at: contents(f'{at}/x'),
        NEW,
    ),
}


def observe(reader, changer, kind):
    try:
        return KINDS[kind][3](f'{readers[reader]}/{changer}/{kind}')
    except OSError as error:
        return errno.errorcode[error.errno]


def prepare():
    """Prepares each kind, and lets every reader read it until it is cached."""
    rows = []
    for changer, top in changers.items():
        for kind, (_, before, *_) in KINDS.items():
            try:
                os.makedirs(f'{top}/{changer}/{kind}')
                before(f'{top}/{changer}/{kind}')
                rows.append((changer, kind))
            except OSError as error:
                print(f'{changer}: {kind}: cannot be prepared there: {error.strerror}')
    end = time.monotonic() + 8
    while time.monotonic() < end:
        for row in rows:
            for reader in readers:
                observe(reader, *row)
        time.sleep(0.3)
    return rows


def follow(rows):
    """Makes the changes, and observes each at once and then until all are seen.

    Returns for each cell the time of the last old observation, and of the first new one.
    """
    changed, unseen, seen, missing = {}, {}, {}, []

    def is_new(cell):
        at = time.monotonic() - changed[cell[:2]]
        if observe(cell[2], *cell[:2]) == KINDS[cell[1]][4]:
            seen[cell] = time.monotonic() - changed[cell[:2]]
            return True
        unseen[cell] = at
        return False

    for changer, kind in list(rows):
        try:
            KINDS[kind][2](f'{changers[changer]}/{changer}/{kind}')
        except OSError as error:
            print(f'{changer}: {kind}: cannot be changed there: {error.strerror}')
            rows.remove((changer, kind))
            continue
        changed[changer, kind] = time.monotonic()
        cells = [(changer, kind, reader) for reader in readers]
        missing += [cell for cell in cells if not is_new(cell)]
    end = time.monotonic() + SECONDS
    while missing and time.monotonic() < end:
        time.sleep(0.1)
        missing = [cell for cell in missing if not is_new(cell)]
    return unseen, seen


def judge(rows, unseen, seen):
    print(' ' * 40 + ''.join(f'{reader:>12}' for reader in readers))
    for changer, kind in rows:
        cells = [(changer, kind, reader) for reader in readers]
        words = [
            'at once' if cell not in unseen else f'{seen[cell]:.1f} s' if cell in seen else 'never'
            for cell in cells
        ]
        print(f'{changer}: {kind}'.ljust(40) + ''.join(f'{word:>12}' for word in words))
        if cells[0] not in seen:
            continue
        bare = seen[cells[0]]
        allowed = 1.5 + (bare if KINDS[kind][0] else max(bare, client_ttl))
        for cell, word in zip(cells[1:], words[1:]):
            if cell not in seen or unseen.get(cell, 0) > allowed:
                print(f'WRONG {cell[2]}: {changer}: {kind}: {word}, allowed {allowed:.1f} s')


def hold(rows, seen):
    """Checks that no reader returns to an old value."""
    for _ in range(3):
        for changer, kind in rows:
            for reader in readers:
                was_seen = (changer, kind, reader) in seen
                if was_seen and observe(reader, changer, kind) != KINDS[kind][4]:
                    print(f'WRONG {reader}: {changer}: {kind}: went back in time')
        time.sleep(0.5)


all_rows = prepare()
all_unseen, all_seen = follow(all_rows)
judge(all_rows, all_unseen, all_seen)
hold(all_rows, all_seen)
