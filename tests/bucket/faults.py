"""Writes and reads files over a link that fails at random, and compares them over a sound link.

usage: faults.py SECONDS LINK FAULTY SOUND

LINK is the PID of faulty_link.py. FAULTY and SOUND are mounts of the same bucket.
"""

import os
import random
import signal
import sys
import time

seconds, link, faulty, sound = float(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
dice = random.Random(1)
until = time.monotonic() + seconds
os.kill(link, signal.SIGUSR1)
expected, refused, longest, read = {}, 0, 0.0, 0
number = 0
while time.monotonic() < until:
    name = f"file{number % 8}"
    number += 1
    body = random.Random(number).randbytes(dice.choice([10, 5_000, 300_000, 9_000_000]))
    began = time.monotonic()
    try:
        with open(f"{faulty}/{name}", "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        expected[name] = {body}
    except OSError:
        # Until the next upload, either the old or the new bytes are right.
        refused += 1
        expected.setdefault(name, {b"", None}).add(body)
    longest = max(longest, time.monotonic() - began)
    name = dice.choice(list(expected))
    began = time.monotonic()
    try:
        found = open(f"{faulty}/{name}", "rb").read()
        read += 1
        if found not in expected[name]:
            sys.exit(f"{name} has {len(found)} bytes that were never written")
    except OSError:
        refused += 1
    longest = max(longest, time.monotonic() - began)
os.kill(link, signal.SIGUSR2)
wrong = []
for _ in range(200):
    wrong = []
    for name, bodies in expected.items():
        try:
            if open(f"{sound}/{name}", "rb").read() not in bodies:
                wrong.append(name)
        except FileNotFoundError:
            if None not in bodies:
                wrong.append(name)
    if not wrong:
        break
    # Pending uploads succeed now.
    time.sleep(0.5)
print(
    f"{number} files written, {read} read, {refused} errors, "
    f"the longest operation took {longest:.1f} s"
)
if wrong:
    sys.exit(f"wrong bytes in the store: {wrong}")
