"""Runs in the guest: creates each situation, runs the doctor, and carries out its advice.

An answer is wrong in these cases:
- Its kind or its cause is not the situation's.
- The answer from a capture differs from the live answer.
- A command of the remedy fails.
- The sign that the remedy worked is there before the remedy, or missing after it.
- The command that undoes the remedy fails or does not restore the state.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

import command_line
from situations import SITUATIONS

POOL = "tank"
OUT = "/host/out"
PARAMETERS = "/sys/module/zfs/parameters"
# From this confidence on, a cause counts.
LIKELY = 0.6
# A remedy has worked if the work's share of the CPU falls below this part of its old share.
WORKED = 0.6
ENVIRONMENT = {**os.environ, "P": POOL, "OGIVE": "/usr/local/bin/ogive"}


def sh(script, check=True, seconds=300):
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=ENVIRONMENT, timeout=seconds
    )
    if check and done.returncode:
        print(f"         failed: {script}\n{done.stderr}")
    return done


def begin():
    """Creates the pool, and files that several situations need."""
    sh("umask 077; echo 12345678901234567890123456789012 | head -c 32 > /tmp/key")
    sh("head -c 67108864 /dev/urandom > /tmp/noise; useradd -m u")
    sh("printf ',2G\\n,2G\\n,2G\\n,\\n' | sfdisk -q -X gpt /dev/vdc; udevadm settle")
    sh(f"zpool create -f -o ashift=12 -O compression=off -O atime=off -O mountpoint=/{POOL} {POOL}"
       " /dev/vdb")
    # Unused data sets with expensive properties: they must not lead to a wrong cause.
    sh("zfs create -o mountpoint=none $P/unused; zfs create -o compression=zstd-19"
       " -o recordsize=1M -o checksum=sha256 $P/unused/dear")
    with open("/tmp/text", "wb") as f:
        import random

        random.seed(1)
        letters = b"abcdefghijklmnopqrstuvwxyz"
        words = [bytes(random.choices(letters, k=random.randint(3, 9))) for _ in range(3000)]
        for _ in range(16):
            f.write(b" ".join(random.choices(words, k=160_000)))


def limit(mb):
    for name, value in (("zfs_arc_min", 32), ("zfs_arc_max", mb)):
        with open(f"{PARAMETERS}/{name}", "w") as f:
            f.write(str(value << 20))
    sh("echo 3 > /proc/sys/vm/drop_caches")


def data_sets():
    return set(sh("zfs list -H -o name -t filesystem,volume").stdout.split())


class Load:
    def __init__(self, script):
        self.shell = script and subprocess.Popen(
            ["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, env=ENVIRONMENT,
        )

    def end(self):
        if self.shell:
            for sign in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(self.shell.pid, sign)
                except ProcessLookupError:
                    break
                time.sleep(1)
            self.shell.wait()


def ask(one, name, seconds=10):
    """Runs the doctor live; returns its exit code and its answer as JSON."""
    command = ["ogive", "doctor", "--for", f"{seconds}s", "--json", *one.ask.split()]
    if one.user:
        command = ["setpriv", "--reuid=u", "--regid=u", "--clear-groups", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    with open(f"{OUT}/{name}.json", "w") as f:
        f.write(done.stdout)
    with open(f"{OUT}/{name}.err", "w") as f:
        f.write(done.stderr)
    return done.returncode, json.loads(done.stdout or "{}")


def first(answer):
    """Returns the first cause, and its finding."""
    found = [one for one in answer.get("findings", []) if not one.get("hint")]
    if found and found[0]["confidence"] >= LIKELY:
        return found[0]["id"], found[0]
    return "", None


def faults(one, code, answer):
    if code not in (0, 7, 8, 9) or "sentence" not in answer:
        return [f"no answer, exit code {code}"]
    bad = []
    kind, line, whole = answer["verdict"], answer["sentence"], json.dumps(answer)
    if not re.fullmatch(one.kinds, kind):
        bad.append(f"the kind is {kind}, not {one.kinds}")
    cause = first(answer)[0]
    if not re.fullmatch(f"({one.causes})", cause):
        bad.append(f"the first cause is {cause or 'none'}, not {one.causes or 'none'}")
    if one.never and re.search(one.never, line):
        bad.append(f"the first line matches /{one.never}/")
    if one.says and one.says not in whole:
        bad.append(f"the answer does not mention {one.says}")
    return bad


def by_capture(one, live):
    """A capture of the same situation must have the same kind and the same cause."""
    path = f"{OUT}/{one.name}.tar.zst"
    taken = sh(f"ogive capture --for 10s -o {path}", seconds=600)
    if taken.returncode:
        return [f"the capture ended with {taken.returncode}"]
    done = sh(f"ogive doctor --json {path}", check=False)
    answer = json.loads(done.stdout or "{}")
    bad = [f"the capture: {fault}" for fault in faults(one, done.returncode, answer)]
    captured, expected = answer.get("verdict"), live["verdict"]
    if captured != expected and not re.fullmatch(one.kinds, captured or ""):
        bad.append(f"the kind is {captured} from the capture, and {expected} live")
    return bad


def parameter_of(command):
    found = re.search(rf"> ({PARAMETERS}/\w+)$", command)
    return found and found[1]


def value(path):
    with open(path) as f:
        return f.read().strip()


def advice(one, finding, load):
    """Carries out the remedy, runs the doctor again, and undoes the remedy."""
    bad, changes = [], finding["remedy"].get("changes", [])
    if not changes:
        return bad, load
    if finding["remedy"].get("worked"):
        bad.append("the sign that the remedy worked is there before the remedy")
    before = {}
    for change in changes:
        path = parameter_of(change["run"])
        if path:
            before[path] = value(path)
        done = sh(change["run"], check=False)
        print(f"         {change['run']}: {done.returncode}")
        if done.returncode:
            bad.append(f"`{change['run']}` ended with {done.returncode}: {done.stderr.strip()}")
        elif path and value(path) == before[path]:
            bad.append(f"`{change['run']}` changed nothing")
    if one.again:
        load.end()
        sh(one.again)
        load = Load(one.load)
    time.sleep(one.warm)
    _, after = ask(one, f"{one.name}.after")
    same = [found for found in after.get("findings", []) if found["id"] == finding["id"]]
    left = same[0] if same else None
    share, was = (left or {}).get("share_percent") or 0.0, finding["share_percent"] or 0.0
    worked = left["remedy"].get("worked") if left else None
    print(f"         then: {after.get('sentence')} ({share:.0f}% of {was:.0f}%, worked {worked})")
    # A lower priority takes no CPU from a program if no other program needs it.
    ends_work = not all(change["run"].startswith("renice") for change in changes)
    lessens = left is None or was and share <= WORKED * was
    if ends_work and not (worked or worked is None and lessens):
        bad.append(f"the remedy did not work: {finding['remedy']['verify']}")
    for change in reversed(changes):
        path = parameter_of(change["run"])
        if change["undo"] is None:
            bad.append(f"`{change['run']}` has no undo")
            continue
        done = sh(change["undo"], check=False)
        if done.returncode:
            bad.append(f"`{change['undo']}` ended with {done.returncode}: {done.stderr.strip()}")
        elif path and value(path) != before[path] and before[path] != "0":
            bad.append(f"`{change['undo']}` left {value(path)} instead of {before[path]}")
    return bad, load


def run(one):
    print(f"-- {one.name}", flush=True)
    before = data_sets()
    limit(one.cold)
    if one.make:
        sh(one.make)
    load = Load(one.load)
    bad = []
    try:
        time.sleep(one.warm)
        started = time.monotonic()
        code, answer = ask(one, one.name)
        took = time.monotonic() - started
        print(f"         {answer.get('sentence')}  [{answer.get('verdict')},"
              f" {first(answer)[0] or 'no cause'}, exit {code}, {took:.0f} s]")
        bad += faults(one, code, answer)
        if not one.user and "verdict" in answer:
            bad += by_capture(one, answer)
        finding = first(answer)[1]
        if finding and not one.user:
            more, load = advice(one, finding, load)
            bad += more
    finally:
        load.end()
        if one.undo:
            sh(one.undo)
        for name in sorted(data_sets() - before, key=len):
            sh(f"zfs destroy -rf {name}", check=False)
        sh(f"zpool sync {POOL}")
    print(f"{'FAILED' if bad else 'ok    '} {one.name}")
    for fault in bad:
        print(f"         {fault}")
    sys.stdout.flush()
    return bool(bad)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    _, situations = command_line.chosen(parser, "situation", SITUATIONS)
    begin()
    wrong = sum(run(one) for one in situations)
    print(f"{len(situations)} situations, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
