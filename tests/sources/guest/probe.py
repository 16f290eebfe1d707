"""Prints how a file system behaves, a line for each point, for comparison with another one.

usage: probe.py DIRECTORY

Points are independent, and their results are the same in each run.
"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import random
import socket
import sqlite3
import stat
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
POINTS = []


def point(function):
    POINTS.append(function)
    return function


def attempt(function, *arguments):
    """Returns the result of a function, or the name of its error."""
    try:
        return function(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except sqlite3.Error as error:
        return str(error)


@contextlib.contextmanager
def opened(path, flags=os.O_RDWR | os.O_CREAT, mode=0o644):
    file = os.open(path, flags, mode)
    try:
        yield file
    finally:
        os.close(file)


def put(path, data, flags=os.O_CREAT | os.O_TRUNC | os.O_WRONLY):
    with opened(path, flags) as file:
        os.write(file, data)


def get(path):
    with open(path, 'rb') as file:
        return file.read()


def shell(command):
    """Returns the output of a command and its exit code."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=240)
    output = (done.stdout + done.stderr).strip().replace(os.getcwd(), 'HERE')
    return output.replace('\n', ' | ')[:300], done.returncode


def system(function, *arguments):
    """Calls a function of the C library; returns ok or the name of its error."""
    failed = function(*arguments)
    return errno.errorcode[ctypes.get_errno()] if failed else 'ok'


@point
def write_append_truncate():
    put('a', b'hello')
    put('a', b' world', os.O_WRONLY | os.O_APPEND)
    results = [get('a')]
    os.truncate('a', 5)
    results.append(get('a'))
    os.truncate('a', 9)
    results.append(get('a'))
    with opened('a', os.O_RDWR | os.O_TRUNC) as file:
        os.write(file, b'short')
        return results + [os.pread(file, 99, 0), os.stat('a').st_size]


@point
def create_exclusive():
    put('exclusive', b'')
    return attempt(put, 'exclusive', b'', os.O_CREAT | os.O_EXCL | os.O_WRONLY)


@point
def overwrite_in_the_middle():
    put('middle', b'x' * 300_000)
    with opened('middle') as file:
        os.pwrite(file, b'YY', 131_071)
        os.fsync(file)
    return len(get('middle')), get('middle')[131_070:131_074]


@point
def modes_of_creation():
    def create(mode):
        with opened(f'mode-{mode:o}', os.O_CREAT | os.O_RDWR, mode) as file:
            os.write(file, b'x')
            return oct(os.fstat(file).st_mode)

    return [attempt(create, mode) for mode in (0o444, 0o200, 0o000, 0o755)]


@point
def rename_over():
    put('from', b'1')
    put('to', b'2')
    os.rename('from', 'to')
    return os.path.exists('from'), get('to')


@point
def rename_directory():
    os.mkdir('before')
    put('before/f', b'f')
    os.rename('before', 'after')
    return get('after/f'), os.path.exists('before/f')


@point
def rename_over_open_file():
    put('one', b'one')
    put('two', b'two')
    with opened('two', os.O_RDONLY) as file:
        os.rename('one', 'two')
        return os.read(file, 9), get('two')


@point
def rename_by_flag():
    for name in (b'r1', b'r2'):
        put(name, name)
    # RENAME_NOREPLACE, RENAME_EXCHANGE.
    results = [system(libc.renameat2, -100, b'r1', -100, b'r2', flag) for flag in (1, 2)]
    return results, get('r1')


@point
def unlink_open_file():
    os.mkdir('unlinked')
    put('unlinked/f', b'before')
    with opened('unlinked/f') as file:
        os.unlink('unlinked/f')
        results = [os.read(file, 99)]
        os.pwrite(file, b'AFTER!', 0)
        results += [os.pread(file, 99, 0), os.fstat(file).st_nlink, os.fstat(file).st_size]
        results.append(sorted(name[:4] for name in os.listdir('unlinked')))
        os.ftruncate(file, 2)
        results.append(os.fstat(file).st_size)
        results.append(attempt(os.rmdir, 'unlinked'))
    return results, attempt(os.rmdir, 'unlinked')


@point
def unlink_and_make_again():
    put('again', b'old')
    with opened('again', os.O_RDONLY) as file:
        os.unlink('again')
        put('again', b'new!')
        return os.read(file, 9), get('again')


@point
def hard_links():
    put('h1', b'h')
    os.link('h1', 'h2')
    put('h2', b'changed')
    results = get('h1'), os.stat('h1').st_nlink, os.stat('h1').st_ino == os.stat('h2').st_ino
    os.unlink('h1')
    return results, os.stat('h2').st_nlink, get('h2')


@point
def symbolic_links():
    put('target', b'target')
    os.symlink('target', 'link')
    found = os.lstat('link')
    return os.readlink('link'), get('link'), stat.S_ISLNK(found.st_mode), found.st_size


@point
def extended_attributes():
    put('x', b'')
    results = [attempt(os.getxattr, 'x', 'user.none')]
    os.setxattr('x', 'user.t', b'v1')
    results += [os.getxattr('x', 'user.t'), os.listxattr('x')]
    os.setxattr('x', 'user.t', b'v' * 1000)
    results.append(len(os.getxattr('x', 'user.t')))
    os.removexattr('x', 'user.t')
    return results + [os.listxattr('x')]


@point
def trusted_attributes():
    put('trusted', b'')
    os.setxattr('trusted', 'trusted.t', b'v')
    return os.getxattr('trusted', 'trusted.t')


@point
def access_lists():
    put('acl', b'')
    os.mkdir('acls')
    results = [shell('setfacl -m u:1234:rw acl; getfacl -c acl')]
    results.append(shell('setfacl -d -m u:1234:rwx acls'))
    put('acls/f', b'')
    return results + [shell('getfacl -c acls/f')]


def lock_of_another(path, call):
    program = f'''
import fcntl, os
file = os.open({path!r}, os.O_RDWR)
for start in (0, 20):
    try:
        fcntl.{call}
        print('got')
    except OSError as error:
        print('refused', error.errno)
'''
    done = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True, timeout=60
    )
    return done.stdout.split('\n')


@point
def locks_of_files():
    other = 'flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)'
    with opened('flock') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        results = lock_of_another('flock', other)
        fcntl.flock(file, fcntl.LOCK_UN)
        return results, lock_of_another('flock', other)


@point
def locks_of_ranges():
    other = 'lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, start)'
    with opened('lockf') as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)
        results = lock_of_another('lockf', other)
        fcntl.lockf(file, fcntl.LOCK_UN, 10, 0)
        return results, lock_of_another('lockf', other)


@point
def maps():
    put('map', b'a' * 200_000)
    with opened('map') as file, mmap.mmap(file, 200_000) as mapped:
        mapped[150_000:150_003] = b'MAP'
        mapped.flush()
        results = os.pread(file, 5, 149_999), mapped[5:7]
        os.pwrite(file, b'ZZ', 5)
        return results, mapped[5:7], get('map')[149_999:150_004]


@point
def execute():
    return shell('cp /bin/true program; chmod 755 program'), shell('./program')


@point
def direct_io():
    put('direct', b'x' * 300_000)
    with opened('direct', os.O_RDWR | os.O_DIRECT) as file:
        read, written = mmap.mmap(-1, 65536), mmap.mmap(-1, 4096)
        written[:] = b'D' * 4096
        results = [os.pwritev(file, [written], 8192), os.preadv(file, [read], 4096)]
    return results, read[4094:4098], get('direct')[8191:8194]


@point
def holes():
    put('holes', b'x' * 100_000)
    with opened('holes') as file:

        def fallocate(flags, start, length):
            call = libc.fallocate
            return system(call, file, flags, ctypes.c_long(start), ctypes.c_long(length))

        # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE.
        results = [fallocate(3, 4096, 8192), os.pread(file, 3, 4096), os.fstat(file).st_size]
        return results, fallocate(0, 0, 200_000), os.fstat(file).st_size


@point
def seek_hole():
    with opened('sparse') as file:
        os.pwrite(file, b'x', 10 << 20)
        return os.lseek(file, 0, os.SEEK_HOLE), os.lseek(file, 0, os.SEEK_DATA)


@point
def beyond_four_gib():
    with opened('far') as file:
        results = os.pwrite(file, b'x', 5 << 30), os.fstat(file).st_size, os.pread(file, 1, 5 << 30)
    os.unlink('far')
    return results


@point
def copies():
    put('original', b'c' * 300_000)
    results = [shell('cp --reflink=always original linked')[1]]
    results.append(shell('cp --reflink=auto original copied; cmp original copied'))
    with opened('original', os.O_RDONLY) as source, opened('ranged') as target:
        results.append(os.copy_file_range(source, target, 300_000))
    return results, get('ranged') == get('original')


@point
def set_times():
    def put_back(at):
        os.utime('times', ns=(at, at))
        return os.stat('times').st_mtime_ns - at

    put('times', b'')
    years = {1960: -315619200_500000000, 1975: 157766400_000000000, 2023: 1700000001_123456789}
    years |= {2040: 2208988800_250000000, 2200: 7258118400_000000000}
    return {year: attempt(put_back, at) for year, at in years.items()}


def is_recent(path):
    return abs(time.time() - os.stat(path).st_mtime) < 60


@point
def time_of_a_write():
    put('written', b'')
    os.utime('written', (1e9, 1e9))
    put('written', b'zz', os.O_WRONLY)
    # An SMB server sets the time when the client closes the file, and close(2) on FUSE does not
    # wait.
    late = time.time() + 30
    while not (is_new := is_recent('written')) and time.time() < late:
        time.sleep(0.1)
    os.utime('written')
    return is_new, is_recent('written')


@point
def owners_and_modes():
    put('owned', b'root')
    results = [attempt(os.chown, 'owned', 1000, 1001), os.stat('owned').st_uid]
    for mode in (0o640, 0o4755, 0o444):
        results.append(attempt(os.chmod, 'owned', mode))
        results.append(oct(os.stat('owned').st_mode))
    return results, attempt(put, 'owned', b'ROOT', os.O_WRONLY), get('owned')


@point
def special_files():
    def bind():
        with socket.socket(socket.AF_UNIX) as one:
            one.bind('socket')

    results = attempt(os.mkfifo, 'fifo'), attempt(os.mknod, 'null', 0o20600, os.makedev(1, 3))
    results += (attempt(bind),)
    return results, sorted(
        (entry.name, oct(entry.stat(follow_symlinks=False).st_mode), entry.is_file())
        for entry in os.scandir('.')
        if entry.name in ('fifo', 'null', 'socket')
    )


@point
def odd_names():
    def make(name):
        put(name, b'u')
        return os.fsencode(name) in os.listdir(b'.'), get(name)

    names = ['Ünïcode-日本語-😀', 'e\u0301', '\u00e9', 'x' * 255, 'あ' * 85, b'bad\xff\xfe', 'a:b']
    names += ['q?', 'back\\slash', 'dot.', 'space ', ' lead', 'con', 'aux.txt', 'x<y', 'tab\t', '-']
    return [attempt(make, name) for name in names + ['~', '*']]


@point
def listing_agrees_with_stat():
    os.makedirs('listed/d')
    put('listed/f', b'')
    attempt(os.symlink, 'f', 'listed/l')
    return sorted(
        (
            entry.name,
            entry.is_file(follow_symlinks=False),
            entry.is_dir(follow_symlinks=False),
            entry.is_symlink(),
            entry.inode() == os.lstat(entry.path).st_ino,
        )
        for entry in os.scandir('listed')
    )


@point
def inode_numbers_stay():
    put('number', b'1')
    first = os.stat('number').st_ino
    put('number', b'22')
    time.sleep(1.3)
    results = first == os.stat('number').st_ino
    os.rename('number', 'number-2')
    return results, first == os.stat('number-2').st_ino


@point
def directories():
    os.makedirs('full/x/y')
    with opened('.', os.O_RDONLY) as file:
        os.fsync(file)
    return os.stat('full').st_nlink, attempt(os.rmdir, 'full')


@point
def whole_file_system():
    found = os.statvfs('.')
    return found.f_bsize, found.f_namemax, found.f_blocks > 0, found.f_files > 0


@point
def blocks():
    put('blocks', b'x' * 100_000)
    return os.stat('blocks').st_blocks > 0, os.stat('blocks').st_blksize > 0


@point
def time_of_birth():
    put('birth', b'')
    return shell('stat -c %W birth')[0] not in ('0', '-')


@point
def nameless_files():
    os.close(os.open('.', os.O_TMPFILE | os.O_RDWR))


@point
def appends_by_two():
    put('both', b'')
    with opened('both', os.O_WRONLY | os.O_APPEND) as a:
        with opened('both', os.O_WRONLY | os.O_APPEND) as b:
            for _ in range(5):
                os.write(a, b'a')
                os.write(b, b'b')
    return get('both')


@point
def reads_at_random():
    draw = random.Random(3)
    data = draw.randbytes(8 << 20)
    put('random', data)
    with opened('random', os.O_RDONLY) as file:
        places = [draw.randrange(len(data) // 8192) * 8192 for _ in range(1500)]
        return sum(os.pread(file, 8192, at) != data[at : at + 8192] for at in places)


@point
def git():
    identity = 'git config user.email a@b && git config user.name n'
    return shell(
        f'git init -q g && cd g && {identity} && echo 1 >f && git add f && git commit -qm 1 &&'
        ' echo 2 >>f && git status --porcelain && git commit -qam 2 &&'
        ' git log --oneline | wc -l && git fsck 2>&1 | tail -n 1'
    )


@point
def database():
    def fill(mode):
        with contextlib.closing(sqlite3.connect(f'{mode}.sqlite', timeout=5)) as base:
            results = base.execute(f'pragma journal_mode={mode}').fetchone()
            base.execute('create table t(x)')
            base.executemany('insert into t values(?)', [(number,) for number in range(500)])
            base.commit()
            counted = base.execute('select count(*), sum(x) from t').fetchone()
            return results, counted, base.execute('pragma integrity_check').fetchone()

    return attempt(fill, 'delete'), attempt(fill, 'wal')


os.makedirs(sys.argv[1], exist_ok=True)
os.chdir(sys.argv[1])
os.umask(0o022)
for each in POINTS:
    print(each.__name__, attempt(each), flush=True)
