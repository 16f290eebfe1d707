"""Does one piece of work on a directory, while the caller counts operations.

usage: workloads.py random|8k|find|status|make DIRECTORY
       workloads.py prepare DIRECTORY
"""

import os
import pathlib
import random
import subprocess
import sys


def blocks(directory):
    files = sorted(pathlib.Path(directory, 'set').iterdir())
    return [(file, at) for file in files for at in range(0, file.stat().st_size, 131_072)]


def read(places, length):
    opened = {file: os.open(file, os.O_RDONLY) for file in {file for file, _ in places}}
    for file in opened.values():
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    for file, at in places:
        if len(os.pread(opened[file], length, at)) != length:
            sys.exit(f'{file} is too short at {at}')


def run(command, directory):
    subprocess.run(command, shell=True, cwd=directory, check=True, stdout=subprocess.DEVNULL)


def prepare(directory):
    """Makes 48 MiB of data, 10,000 small files, a repository, and a program in 25 files."""
    top = pathlib.Path(directory)
    draw = random.Random(1)
    for name in ('set', 'tree', 'repository', 'program'):
        (top / name).mkdir()
    for number in range(3):
        (top / f'set/f{number}').write_bytes(draw.randbytes(16 << 20))
    for number in range(10_000):
        file = top / f'tree/d{number // 100:03}/n{number % 100:03}'
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b'x' * 100)
    for number in range(300):
        file = top / f'repository/d{number % 20}/f{number}'
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'{number}\n')
    run(
        'git init -q . && git add . && git -c user.name=n -c user.email=a@b commit -qm 1',
        top / 'repository',
    )
    program = top / 'program'
    includes = ''.join(f'#include <{name}.h>\n' for name in ('stdio', 'stdlib', 'string'))
    for number in range(24):
        lines = ''.join(f'int f{number}_{k}(int x) {{ return x * {k}; }}\n' for k in range(60))
        (program / f'm{number}.c').write_text(f'{includes}#include "h.h"\n{lines}')
    (program / 'h.h').write_text(''.join(f'int f{n}_0(int x);\n' for n in range(24)))
    calls = ' + '.join(f'f{n}_0({n})' for n in range(24))
    (program / 'main.c').write_text(f'#include "h.h"\nint main(void) {{ return {calls}; }}\n')
    (program / 'Makefile').write_text(
        'O = $(patsubst %.c,%.o,$(wildcard *.c))\nprogram: $(O)\n\tgcc -o $@ $(O)\n'
        '%.o: %.c h.h\n\tgcc -O1 -c -o $@ $<\nclean:\n\trm -f *.o program\n'
    )
    # Built now, so that the first `make clean` has as much work as later ones.
    run('make -s', program)


what, where = sys.argv[1:]
if what == 'prepare':
    prepare(where)
elif what == 'random':
    places = blocks(where)
    random.Random(7).shuffle(places)
    read(places, 131_072)
elif what == '8k':
    draw = random.Random(9)
    places = [(file, at + draw.randrange(16) * 8192) for file, at in blocks(where)]
    draw.shuffle(places)
    read(places, 8192)
elif what == 'find':
    run('[ "$(find . -type f -size -100k | wc -l)" = 10000 ]', os.path.join(where, 'tree'))
elif what == 'status':
    run('git status --porcelain', os.path.join(where, 'repository'))
elif what == 'make':
    run('make -s clean && make -s -j2', os.path.join(where, 'program'))
