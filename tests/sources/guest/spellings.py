"""Prints the answers of a case-insensitive file system to spellings of names, a line for each point.

usage: spellings.py DIRECTORY [BEHIND]

BEHIND is the same directory behind the mount; if given, changes are also made there. Each point looks
up other spellings before a change, so that they are cached, and at once after it.
"""

import errno
import os
import sys

top = sys.argv[1]


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]


def put(path, text):
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)


def get(path):
    with open(path, encoding='ascii') as file:
        return file.read()


def there(*names):
    return [os.path.exists(name) for name in names]


def make(at):
    results = there('neg.txt', 'NEG.TXT')
    put(f'{at}/Neg.txt', '1')
    return results, there('neg.txt', 'NEG.TXT', 'Neg.txt')


def remove(at):
    put('Gone.txt', '1')
    results = there('gone.txt', 'GONE.TXT')
    os.unlink(f'{at}/Gone.txt')
    return results, there('gone.txt', 'GONE.TXT', 'Gone.txt')


def remove_by_another_spelling(at):
    put('Kill.txt', '1')
    results = there('kill.txt', 'Kill.txt')
    results.append(attempt(os.unlink, f'{at}/kill.txt'))
    return results, there('Kill.txt', 'kill.txt', 'KILL.TXT')


def rename(at):
    put('A.txt', 'a')
    results = there('a.txt', 'b.txt')
    os.rename(f'{at}/A.txt', f'{at}/B.txt')
    return results, there('a.txt', 'A.txt', 'b.txt', 'B.TXT')


def rename_to_another_spelling(at):
    put('Ren.txt', 'ren')
    results = there('ren.txt')
    os.rename(f'{at}/Ren.txt', f'{at}/ren.txt')
    listed = sorted(name for name in os.listdir('.') if name.lower() == 'ren.txt')
    return results, listed, attempt(get, 'ren.txt'), attempt(get, 'REN.TXT')


def rename_over_another_spelling(at):
    put('Target.txt', 'old')
    put('from', 'new')
    results = [attempt(get, name) for name in ('Target.txt', 'target.TXT')]
    os.rename(f'{at}/from', f'{at}/target.TXT')
    listed = sorted(name for name in os.listdir('.') if name.lower() == 'target.txt')
    spellings = ('Target.txt', 'target.TXT', 'TARGET.TXT')
    return results, listed, [attempt(get, name) for name in spellings]


def write_by_another_spelling(at):
    put('Case.TXT', 'upper')
    with open('Case.TXT', encoding='ascii') as file:
        results = file.read()
        put(f'{at}/case.txt', 'lower')
        file.seek(0)
        same = attempt(os.stat, 'Case.TXT') == attempt(os.stat, 'case.txt')
        return results, attempt(get, 'Case.TXT'), attempt(get, 'CASE.txt'), same


def make_exclusively(at):
    put('Only.txt', '1')
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    return attempt(lambda: os.close(os.open(f'{at}/ONLY.txt', flags))), there('only.txt')


def append_by_both(at):
    put('Two.log', '')
    with open('Two.log', 'ab', buffering=0) as one, open(f'{at}/two.log', 'ab', buffering=0) as two:
        for _ in range(3):
            one.write(b'a')
            two.write(b'b')
    return get('Two.log'), attempt(get, 'TWO.LOG')


def directory(at):
    os.mkdir('Dir')
    results = there('dir/g', 'DIR/G')
    results.append(attempt(put, f'{at}/dir/g', '2'))
    results += [attempt(os.listdir, name) for name in ('Dir', 'DIR')]
    results.append(attempt(os.rename, f'{at}/dir', f'{at}/Other'))
    return results, there('Dir/g', 'dir/g', 'other/g', 'OTHER/G')


def made_again_as_a_directory(at):
    put('Kind', '1')
    results = there('kind', 'KIND')
    os.unlink(f'{at}/Kind')
    os.mkdir(f'{at}/KIND')
    return results, [attempt(os.path.isdir, name) for name in ('kind', 'Kind', 'KIND')]


POINTS = (
    make,
    remove,
    remove_by_another_spelling,
    rename,
    rename_to_another_spelling,
    rename_over_another_spelling,
    write_by_another_spelling,
    make_exclusively,
    append_by_both,
    directory,
    made_again_as_a_directory,
)

for way, place in [('through', '.')] + [('behind', behind) for behind in sys.argv[2:]]:
    for point in POINTS:
        folder = f'{way}-{point.__name__}'
        os.mkdir(f'{top}/{folder}')
        os.chdir(f'{top}/{folder}')
        at = place if way == 'through' else f'{place}/{folder}'
        print(way, point.__name__, attempt(point, at), flush=True)
