"""Stops the server during reads and writes, and starts it again.

usage: stopped_server.py VIEW SOURCE SERVER STOP START hard|errors

STOP and START are commands. `hard`: programs wait until the server is back. `errors`: they get EIO.
A fault is a line that begins with `WRONG`.
"""

import errno
import os
import signal
import subprocess
import sys
import time
import urllib.request

view, source, server, stop, start, how = sys.argv[1:]
# Generous bounds in seconds, for an answer and for a server's recovery.
SOON, SERVED = 15, 120
OGIVE = os.environ['OGIVE']

READ = '''
import errno, sys
try:
    with open(sys.argv[1], 'rb') as file:
        data = file.read()
    print(len(data), data[:1].decode(), flush=True)
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
'''

# Prints each acknowledged line and each error.
WRITE = '''
import errno, os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
number, end = 0, time.time() + float(sys.argv[2])
while time.time() < end:
    try:
        os.write(file, b'%06d\\n' % number)
        os.fsync(file)
        print(number, flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
        time.sleep(0.5)
    number += 1
'''

began = time.monotonic()


def say(*words):
    print(f'{time.monotonic() - began:6.1f}', *words, flush=True)


def wrong(*words):
    print('WRONG', *words, flush=True)


def run(command):
    subprocess.run(command, shell=True, timeout=60, check=False)


def python(program, *arguments):
    return subprocess.Popen(
        [sys.executable, '-c', program, *arguments], stdout=subprocess.PIPE, text=True
    )


def ended(process, seconds):
    try:
        return (process.communicate(timeout=seconds)[0] or '').strip()
    except subprocess.TimeoutExpired:
        return None


def answer(command, seconds):
    """Returns the seconds and the output of a command, or None if it does not end in time."""
    at = time.monotonic()
    process = subprocess.Popen(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        output = process.communicate(timeout=seconds)[0].decode()
    except subprocess.TimeoutExpired:
        # Without a wait, because it may be uninterruptible.
        process.kill()
        return None
    return time.monotonic() - at, output


# Commands that read the mount's state, and a word of their output.
TOOLS = {
    'ogive stat': (f'exec {OGIVE} stat {view} 1 1', 'read'),
    'the control directory': (f'cat {view}/.ogive/mount', '"source_gone"'),
    'ogive doctor': (f'exec {OGIVE} doctor --for 1s {view}', ''),
    'ogive kstat': (f'{OGIVE} kstat --dir /tmp/kstat {view} && echo kept', 'kept'),
}


def check_tools(usual):
    """The tools must answer while the server is stopped, in about their usual time."""
    for name, (command, word) in TOOLS.items():
        allowed = 2 * usual[name][0] + SOON
        found = answer(command, allowed)
        if found is None:
            wrong(
                f'{name}: no answer in {allowed:.0f} s, usually {usual[name][0]:.1f} s'
            )
        else:
            say(f'{name}: {found[0]:.1f} s, usually {usual[name][0]:.1f} s')
            if word not in found[1]:
                wrong(f'{name} prints', found[1][-300:])


def check_watch():
    """The page of `ogive watch` must answer as well."""
    watch = subprocess.Popen(
        [OGIVE, 'watch', view, '--listen', '127.0.0.1:7390'], stdout=subprocess.DEVNULL
    )
    end, text = time.monotonic() + SOON, ''
    while 'ogive' not in text and time.monotonic() < end:
        try:
            with urllib.request.urlopen('http://127.0.0.1:7390/metrics', timeout=SOON) as page:
                text = page.read().decode()
        except OSError as error:
            text = str(error)
            time.sleep(0.5)
    if 'ogive' not in text:
        wrong('ogive watch answers', text[-200:])
    watch.terminate()
    if ended(watch, SOON) is None:
        wrong('ogive watch does not end while the server is stopped')


def check_while_stopped(held, usual):
    """Tools and cached bytes must not need the server."""
    check_tools(usual)
    check_watch()
    data = os.pread(held.fileno(), 65536, 0)
    if data != b'B' * 65536:
        wrong('the cached bytes of an open file are', len(data), data[:1])


def kill_readers(readers):
    for reader, number in zip(readers, (signal.SIGKILL, signal.SIGTERM)):
        reader.send_signal(number)
        at = time.monotonic()
        if ended(reader, SOON) is None:
            wrong(f'a waiting reader does not end in {SOON} s after {number.name}')
        say(f'a reader ended {time.monotonic() - at:.1f} s after {number.name}')


def judge_waiter(waiter):
    result = ended(waiter, SERVED)
    say('the reader that waited:', result)
    allowed = {'2097152 E'} | ({'EIO'} if how == 'errors' else set())
    if result not in allowed:
        wrong('the reader that waited printed', result)


def judge_writer(writer):
    output = ended(writer, SERVED)
    if output is None:
        writer.kill()
        wrong(f'the writer has not ended {SERVED} s after the server was back')
        return
    lines = output.split('\n')
    acknowledged = [line for line in lines if line.isdigit()]
    errors = sorted(set(lines) - set(acknowledged))
    with open(f'{server}/log', encoding='ascii') as file:
        kept = file.read().split('\n')[:-1]
    lost = [line for line in acknowledged if f'{int(line):06}' not in set(kept)]
    say(f'{len(acknowledged)} lines acknowledged, {len(kept)} kept, errors: {errors}')
    if not acknowledged or lost:
        wrong(f'{len(lost)} of {len(acknowledged)} acknowledged lines are lost: {lost[:3]}')
    # A line whose write failed may still arrive later, at any place.
    ordered = [line for line in kept if line.isdigit() and str(int(line)) in set(acknowledged)]
    if ordered != sorted(ordered) or not all(line.isdigit() for line in kept):
        wrong('the log is out of order or has zeros:', kept)
    if how == 'hard' and (errors or len(set(kept)) < len(kept)):
        wrong('a hard mount returned errors or wrote a line twice:', errors)
    if set(errors) - {'EIO', 'ETIMEDOUT', 'EAGAIN', 'EHOSTDOWN'}:
        wrong('errors of the writer:', errors)


def is_current(name):
    """Whether the view shows the server's bytes."""
    reader = python(READ, f'{view}/{name}')
    with open(f'{server}/{name}', 'rb') as file:
        data = file.read()
    return ended(reader, SOON) == f'{len(data)} {data[:1].decode()}'


def check_recovery():
    """The mount must recover by itself."""
    for name in ('log', 'f6', 'f7'):
        end = time.monotonic() + SERVED
        while not is_current(name):
            if time.monotonic() > end:
                wrong(f'{name} cannot be read {SERVED} s after the server was back')
                break
            time.sleep(0.5)
    found = answer(*TOOLS['the control directory'][:1], SOON)
    if found is None or '"source_gone": null' not in found[1]:
        wrong('the source is still reported as gone:', found)


for index in range(8):
    with open(f'{server}/f{index}', 'wb') as file:
        file.write(bytes([65 + index]) * (2 << 20))
with open(f'{view}/f0', 'rb') as file:
    file.read()
usual = {name: answer(command, SERVED) for name, (command, _) in TOOLS.items()}
with open(f'{view}/f1', 'rb', buffering=0) as held:
    held.read(65536)
    writer = python(WRITE, f'{view}/log', '40')
    time.sleep(3)
    run(stop)
    say('the server has stopped')
    readers = [python(READ, f'{view}/f{index}') for index in (2, 3, 4)]
    bare = python(READ, f'{source}/f5')
    time.sleep(3)
    waiting = [reader.poll() is None for reader in readers]
    if how == 'hard' and not all(waiting):
        wrong('a reader did not wait for the server:', waiting)
    check_while_stopped(held, usual)
    if how == 'errors':
        result = ended(readers[2], 60)
        say('readers of the view and of the source:', result, ended(bare, 60))
        if result != 'EIO':
            wrong('a reader ends with', result)
        readers[2] = python(READ, f'{view}/f4')
    kill_readers(readers[:2])
    run(start)
    say('the server has started')
    judge_waiter(readers[2])
    judge_writer(writer)
    check_recovery()
    if os.pread(held.fileno(), 65536, 1 << 20) != b'B' * 65536:
        wrong('a file that was open all the time has other bytes')
for process in (bare, *readers):
    process.kill()
say('done')
