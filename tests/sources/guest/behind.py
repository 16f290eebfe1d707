"""The delay until each reader sees each kind of change by others.

usage: behind.py BELIEVED READER=DIRECTORY... -- CHANGER=DIRECTORY...

All directories are the same one, by different paths. The first reader is the bare source; the others
are views of it. BELIEVED is the TTL of names and attributes in the source's client, in seconds. The
output has all delays, and `WRONG` for those that are longer than promised. A file opened by a known
name may be a second and a half later than bare. Names and attributes may be that much later than
bare, or than the end of the TTL. A change that bare never saw need not be seen.
"""

import errno
import os
import sys
import time

split = sys.argv.index('--')
believed = float(sys.argv[1])
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


def one(directory):
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


def make_anew(directory):
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


def lead_elsewhere(directory):
    os.unlink(f'{directory}/f')
    os.symlink('b', f'{directory}/f')


# Kind: whether a known name is opened, what there is before, the change, a look, what is seen then.
KINDS = {
    'same size': (True, one, in_place, contents, NEW),
    'same size, time put back': (
        True,
        one,
        lambda at: put_time_back(at, in_place),
        contents,
        NEW,
    ),
    'twice in a tick': (True, one, twice, contents, NEW),
    'replaced': (True, one, replace, contents, NEW),
    'replaced, time put back': (True, one, lambda at: put_time_back(at, replace), contents, NEW),
    'made anew': (True, one, make_anew, contents, NEW),
    'grown': (True, one, lambda at: put(f'{at}/f', OLD + NEW), contents, OLD + NEW),
    'cut': (True, one, lambda at: os.truncate(f'{at}/f', 100), contents, OLD[:100]),
    'removed': (True, one, lambda at: os.unlink(f'{at}/f'), contents, 'ENOENT'),
    'became a directory': (False, one, become_directory, lambda at: names(f'{at}/f'), []),
    'made where none was': (False, lambda _: None, one, contents, OLD),
    'listing, one more': (False, one, lambda at: put(f'{at}/g', OLD), names, ['f', 'g']),
    'listing, one less': (False, one, lambda at: os.unlink(f'{at}/f'), names, []),
    'listing, renamed': (False, one, lambda at: os.rename(f'{at}/f', f'{at}/g'), names, ['g']),
    'size': (
        False,
        one,
        lambda at: os.truncate(f'{at}/f', 7),
        lambda at: os.stat(f'{at}/f').st_size,
        7,
    ),
    'mode': (
        False,
        one,
        lambda at: os.chmod(f'{at}/f', 0o400),
        lambda at: oct(os.stat(f'{at}/f').st_mode),
        '0o100400',
    ),
    'sizes in a listing': (
        False,
        one,
        lambda at: os.truncate(f'{at}/f', 7),
        lambda at: [entry.stat().st_size for entry in os.scandir(at)],
        [7],
    ),
    'link led elsewhere': (False, link, lead_elsewhere, contents, NEW),
    'directory on the way': (
        False,
        two_directories,
        exchange_directories,
        lambda at: contents(f'{at}/x'),
        NEW,
    ),
}


def look(reader, changer, kind):
    try:
        return KINDS[kind][3](f'{readers[reader]}/{changer}/{kind}')
    except OSError as error:
        return errno.errorcode[error.errno]


def prepare():
    """The rows of the changes that are possible there; all readers read them until they are cached."""
    rows = []
    for changer, top in changers.items():
        for kind, (_, before, *_) in KINDS.items():
            try:
                os.makedirs(f'{top}/{changer}/{kind}')
                before(f'{top}/{changer}/{kind}')
                rows.append((changer, kind))
            except OSError as error:
                print(f'{changer}: {kind}: cannot be made there: {error.strerror}')
    end = time.monotonic() + 8
    while time.monotonic() < end:
        for row in rows:
            for reader in readers:
                look(reader, *row)
        time.sleep(0.3)
    return rows


def follow(rows):
    """Makes the changes, and looks right after each until all are seen.

    For how long a cell was not as it is now, at least, and after how long it was, at most.
    """
    changed, unseen, seen, missing = {}, {}, {}, []

    def look_at(cell):
        at = time.monotonic() - changed[cell[:2]]
        if look(cell[2], *cell[:2]) == KINDS[cell[1]][4]:
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
        missing += [cell for cell in cells if not look_at(cell)]
    end = time.monotonic() + SECONDS
    while missing and time.monotonic() < end:
        time.sleep(0.1)
        missing = [cell for cell in missing if not look_at(cell)]
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
        allowed = 1.5 + (bare if KINDS[kind][0] else max(bare, believed))
        for cell, word in zip(cells[1:], words[1:]):
            if cell not in seen or unseen.get(cell, 0) > allowed:
                print(f'WRONG {cell[2]}: {changer}: {kind}: {word}, allowed {allowed:.1f} s')


def hold(rows, seen):
    """A change that has been seen stays seen."""
    for _ in range(3):
        for changer, kind in rows:
            for reader in readers:
                known = (changer, kind, reader) in seen
                if known and look(reader, changer, kind) != KINDS[kind][4]:
                    print(f'WRONG {reader}: {changer}: {kind}: went back in time')
        time.sleep(0.5)


all_rows = prepare()
all_unseen, all_seen = follow(all_rows)
judge(all_rows, all_unseen, all_seen)
hold(all_rows, all_seen)
