"""A TCP forwarder on this machine that fails at random while it is switched on.

usage: faulty_link.py PORT UPSTREAM_HOST:PORT

SIGUSR1 switches faults on, SIGUSR2 off. Faults are latency, resets, stalls, half bodies, small pieces
and low bandwidth. They affect either direction, and some connections or all.
"""

import random
import signal
import socket
import struct
import sys
import threading
import time

port, upstream = int(sys.argv[1]), sys.argv[2].rsplit(":", 1)
dice = random.Random(1)
now = None


class Broken(Exception):
    pass


def fail():
    """Chooses a fault about every second, with a pause after each."""
    global now
    kinds = ["latency", "reset", "stall", "half", "pieces", "slow"]
    while True:
        if is_failing.is_set():
            now = (dice.choice(kinds), dice.choice([True, False]), dice.choice([0.3, 1.0]))
            time.sleep(dice.uniform(0.2, 0.8))
        now = None
        time.sleep(dice.uniform(0.1, 0.5))


def hurt(piece, is_up, chance, sent, target):
    """Forwards a piece under the current fault."""
    fault = now
    if fault is None or fault[1] != is_up or chance > fault[2]:
        target.sendall(piece)
        return
    match fault[0]:
        case "latency":
            time.sleep(dice.uniform(0.0, 0.1))
            target.sendall(piece)
        case "reset":
            raise Broken
        case "stall":
            time.sleep(0.3)
            raise Broken
        case "half":
            target.sendall(piece[: len(piece) // 2])
            raise Broken
        case "pieces":
            for at in range(0, len(piece), 700):
                target.sendall(piece[at : at + 700])
        case "slow":
            time.sleep(len(piece) / 2_000_000)
            target.sendall(piece)


def pump(source, target, is_up):
    sent, chance = 0, dice.random()
    try:
        while piece := source.recv(65536):
            hurt(piece, is_up, chance, sent, target)
            sent += len(piece)
        target.shutdown(socket.SHUT_WR)
    except Broken:
        for end in (source, target):
            # Sends RST instead of FIN.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            shut(end)
    except OSError:
        shut(source)
        shut(target)


def shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()


is_failing = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: is_failing.set())
signal.signal(signal.SIGUSR2, lambda *_: is_failing.clear())
threading.Thread(target=fail, daemon=True).start()
listening = socket.create_server(("127.0.0.1", port))
while True:
    here, _ = listening.accept()
    try:
        there = socket.create_connection((upstream[0], int(upstream[1])))
    except OSError:
        here.close()
        continue
    for source, target, is_up in ((here, there, True), (there, here, False)):
        threading.Thread(target=pump, args=(source, target, is_up), daemon=True).start()
