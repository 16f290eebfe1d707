"""Kills the daemon of a mount at random moments while files are written, and checks the files.

usage: kills.py ROUNDS SEED OGIVE BUCKET PREFIX DIRECTORY

Each round mounts s3://BUCKET/PREFIX, and three writers change their own files. It kills the daemon
with -9 within a second and a half, in some rounds during the mount. Then it checks:
- In the store at once: each object is as last synced or closed, or as the current sync or close
  would leave it.
- After the next mount, in the store and in the mount: all acknowledged writes are there. Of an
  interrupted write, any beginning may be there. After an interrupted rename, one or both names have
  all bytes.
- No multipart upload is left, and no log in the stage.
- In some rounds, another client changes an object between the mounts. Its bytes stay, and ours are
  among the conflicts.
"""

import collections
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from s3_client import Store

rounds, seed, ogive, bucket, prefix, work = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
store = Store(bucket)
mnt, stage, log = f"{work}/mnt", f"{work}/stage", f"{work}/log"
dice = random.Random(seed)
tallies = {}
trail = collections.deque(maxlen=400)


def count(what):
    tallies[what] = tallies.get(what, 0) + 1


def applied(before, offset, data):
    """Returns the bytes of a file after a write."""
    padded = before[:offset].ljust(offset, b"\0")
    return padded + data + before[offset + len(data) :]


class Written:
    """A file after an interrupted write: any beginning of the data may be there."""

    def __init__(self, before, offset, data):
        self.before, self.offset, self.data = before, offset, data

    def allows(self, found):
        if found is None:
            return False
        common = 0
        here = found[self.offset : self.offset + len(self.data)]
        step = 65536
        while common < len(here) and here[common : common + step] == self.data[common : common + step]:
            common += step
        common = min(common, len(here))
        while common < len(here) and here[common] == self.data[common]:
            common += 1
        data = self.data[:common]
        return found == (applied(self.before, self.offset, data) if data else self.before)


class One:
    """Exactly these bytes; `None` is no file."""

    def __init__(self, contents):
        self.contents = contents

    def allows(self, found):
        return found == self.contents


class File:
    """The expected state of a file. While its writer runs, only the writer changes it."""

    def __init__(self, name):
        self.name = name
        self.now = None  # the bytes that reads return, and that the next mount uploads
        self.stored = [None]  # the bytes that the store may have
        self.pending = []  # other possible bytes, due to the operation in progress
        self.is_fuzzy = False  # a close returned before its upload: the store may have any bytes

    def settle(self, found):
        self.now, self.stored, self.pending, self.is_fuzzy = found, [found], [], False


class Killed(Exception):
    pass


class Writer(threading.Thread):
    def __init__(self, number, state, to_journal):
        super().__init__(daemon=True)
        self.number, self.to_journal = number, to_journal
        self.state = state
        self.dice = random.Random(dice.random())
        self.is_over, self.error, self.doing = False, None, "nothing"

    def run(self):
        try:
            while True:
                self.step()
        except OSError as error:
            # After the kill, each of these errors is right.
            gone = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENOENT, errno.EINTR)
            if not self.is_over or error.errno not in gone:
                self.error = f"{self.doing}: {error!r}"
        except Exception as error:  # noqa: BLE001
            self.error = f"{self.doing}: {error!r}"

    def path(self, name):
        return f"{mnt}/{name}"

    def data(self, most):
        return self.dice.randbytes(self.dice.choice([1, 100, 5000, self.dice.randrange(1, most)]))

    def write(self, file, descriptor, offset, data):
        while data:
            file.pending = [Written(file.now, offset, data)]
            done = os.pwrite(descriptor, data, offset)
            file.now = applied(file.now, offset, data[:done])
            file.pending = []
            offset, data = offset + done, data[done:]

    def sync(self, file, descriptor):
        trail.append(f"{time.monotonic():.3f} {self.number} syncs {file.name}, {len(file.now)} bytes")
        file.stored.append(file.now)
        os.fsync(descriptor)
        file.stored, file.is_fuzzy = [file.now], False

    def close(self, file, descriptor):
        trail.append(f"{time.monotonic():.3f} {self.number} closes {file.name}, {len(file.now)} bytes")
        file.stored.append(file.now)
        file.is_fuzzy = file.is_fuzzy or self.to_journal
        os.close(descriptor)
        if not self.to_journal:
            file.stored, file.is_fuzzy = [file.now], False

    def step(self):
        name = self.dice.choice(["create", "change", "append", "cut", "rewrite", "rename", "over", "unlink", "tree"])
        self.doing = name
        trail.append(f"{time.monotonic():.3f} {self.number} begins {name}")
        getattr(self, f"do_{name}")()
        trail.append(f"{time.monotonic():.3f} {self.number} has done {name}")
        count(f"{name} done")

    def pick(self, exists):
        files = [file for file in self.state["files"] if (file.now is not None) == exists]
        return self.dice.choice(files) if files else None

    def more(self, file, descriptor, most):
        """Some writes, appended or at random offsets, some of them synced."""
        for _ in range(self.dice.randrange(1, 5)):
            offset = len(file.now)
            if self.dice.random() < 0.3:
                offset = self.dice.randrange(0, len(file.now) + 1)
            self.write(file, descriptor, offset, self.data(most))
            if self.dice.random() < 0.25:
                self.sync(file, descriptor)

    def do_create(self):
        file = self.pick(False)
        if file is None:
            return
        file.pending = [One(b"")]
        descriptor = os.open(self.path(file.name), os.O_CREAT | os.O_EXCL | os.O_RDWR)
        file.now, file.pending = b"", []
        try:
            self.more(file, descriptor, self.dice.choice([50_000, 4_000_000, 9_000_000]))
        except BaseException:
            self.drop(descriptor)
            raise
        self.close(file, descriptor)

    def drop(self, descriptor):
        try:
            os.close(descriptor)
        except OSError:
            pass

    def opened(self, file, flags, act):
        descriptor = os.open(self.path(file.name), flags)
        try:
            act(descriptor)
        except BaseException:
            self.drop(descriptor)
            raise
        self.close(file, descriptor)

    def do_change(self):
        file = self.pick(True)
        if file is not None:
            self.opened(file, os.O_RDWR, lambda to: self.more(file, to, 200_000))

    def do_append(self):
        file = self.pick(True)
        if file is None:
            return
        # With O_APPEND, pwrite appends as well.
        self.opened(
            file,
            os.O_WRONLY | os.O_APPEND,
            lambda to: self.write(file, to, len(file.now), self.data(1_000_000)),
        )

    def do_cut(self):
        file = self.pick(True)
        if file is None:
            return

        def cut(descriptor):
            size = self.dice.choice([0, len(file.now) // 2, len(file.now) + 100_000])
            after = file.now[:size].ljust(size, b"\0")
            file.pending = [One(after)]
            os.ftruncate(descriptor, size)
            file.now, file.pending = after, []
            if self.dice.random() < 0.5:
                self.sync(file, descriptor)

        self.opened(file, os.O_RDWR, cut)

    def do_rewrite(self):
        file = self.pick(True)
        if file is None:
            return
        file.pending = [One(b"")]
        descriptor = os.open(self.path(file.name), os.O_WRONLY | os.O_TRUNC)
        file.now, file.pending = b"", []
        try:
            self.more(file, descriptor, 3_000_000)
        except BaseException:
            self.drop(descriptor)
            raise
        self.close(file, descriptor)

    def renamed(self, source, target):
        bytes_of = source.now
        # Stores cannot rename: the daemon copies and deletes, so either name or both may have the
        # bytes.
        source.pending, target.pending = [One(None)], [One(bytes_of)]
        source.stored = source.stored + [None, bytes_of]
        target.stored = target.stored + [bytes_of]
        self.state["moving"] = (source, target, bytes_of)
        trail.append(f"{time.monotonic():.3f} {self.number} renames {source.name} to {target.name}")
        os.rename(self.path(source.name), self.path(target.name))
        self.state["moving"] = None
        target.settle(bytes_of)
        source.settle(None)

    def do_rename(self):
        source, target = self.pick(True), self.pick(False)
        if source and target:
            self.renamed(source, target)

    def do_over(self):
        source, target = self.pick(True), self.pick(True)
        if source and target and source is not target:
            self.renamed(source, target)

    def do_unlink(self):
        file = self.pick(True)
        if file is None or self.dice.random() < 0.5:
            return
        file.pending, file.stored = [One(None)], file.stored + [None]
        os.unlink(self.path(file.name))
        file.settle(None)

    def do_tree(self):
        """Makes a directory of three files, or renames it."""
        tree = self.state["tree"]
        if tree["bodies"] is None:
            tree["is_making"] = True
            os.mkdir(self.path(tree["name"]))
            bodies = {}
            for number in range(3):
                body = self.dice.randbytes(self.dice.choice([10, 300_000]))
                descriptor = os.open(self.path(f"{tree['name']}/{number}"), os.O_CREAT | os.O_WRONLY)
                os.write(descriptor, body)
                os.fsync(descriptor)
                os.close(descriptor)
                bodies[str(number)] = body
            tree["bodies"], tree["is_making"] = bodies, False
            return
        tree["to"] = tree["other"]
        os.rename(self.path(tree["name"]), self.path(tree["to"]))
        tree["name"], tree["other"], tree["to"] = tree["to"], tree["name"], None


def start(to_journal):
    with open(log, "ab") as out:
        command = [ogive, "mount", "--foreground", "--stage", stage, "--metadata-ttl", "0"]
        command += ["--negative-ttl", "0", "--arc-max", "32M"]
        command += ["--close", "journal"] if to_journal else []
        command += [f"s3://{bucket}/{prefix}", mnt]
        return subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)


def wait_mounted(daemon):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if os.path.ismount(mnt):
            return
        if daemon.poll() is not None:
            break
        time.sleep(0.01)
    tail = open(log, errors="replace").read()[-2000:]
    sys.exit(f"the mount does not start:\n{tail}")


def is_working():
    """Whether the store still works on a request of a dead client."""
    port = f":{int(store.host.rsplit(':', 1)[1]):04X}"
    lines = [line.split() for line in open("/proc/net/tcp")]
    return any(line[1].endswith(port) and line[3] == "08" for line in lines)


def end(daemon):
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    trail.append(f"{time.monotonic():.3f} killed")
    # A store may finish requests of the dead daemon. The checks begin after that.
    while is_working():
        time.sleep(0.005)
    while os.path.ismount(mnt):
        subprocess.run(["umount", "--lazy", mnt], check=False)


def statistic(name):
    for line in open(f"{mnt}/.ogive/ogivestats"):
        fields = line.split()
        if fields and fields[0] == name:
            return int(fields[2])
    return 0


def wait_uploaded():
    until = time.monotonic() + 60
    while statistic("staged_files"):
        if time.monotonic() > until:
            sys.exit(f"{statistic('staged_files')} files are not uploaded")
        time.sleep(0.02)


def key(name):
    return f"{prefix}/{name}"


def describe(found):
    return "no file" if found is None else f"{len(found)} bytes"


def fail(round_, text):
    print(f"round {round_} (seed {seed}): {text}")
    print("\n".join(trail))
    for name in store.names(prefix + "/"):
        metadata, headers = store.head(name)
        print(name, headers.get("content-length"), headers.get("etag"), headers.get("last-modified"), metadata)
    print(conflicts())
    print(open(log, errors="replace").read()[-3000:])
    sys.exit(1)


def check_store(round_, file):
    """Checks the store right after the kill."""
    found = store.get(key(file.name))
    if not file.is_fuzzy and found not in file.stored:
        allowed = [describe(each) for each in file.stored]
        fail(round_, f"{file.name} in the store has {describe(found)}, and not {allowed}")
    return found


def check_after(round_, writer, is_foreign):
    """Checks store and mount after the next mount has uploaded everything."""
    for file in writer.state["files"]:
        found = store.get(key(file.name))
        shown = None
        try:
            shown = open(f"{mnt}/{file.name}", "rb").read()
        except FileNotFoundError:
            pass
        if shown != found:
            fail(round_, f"{file.name} has {describe(found)} and the mount shows {describe(shown)}")
        if file.name in is_foreign:
            if found != is_foreign[file.name]:
                fail(round_, f"{file.name}: another client's bytes were overwritten")
        elif not any(each.allows(found) for each in [One(file.now), *file.pending]):
            # The target of a rename may have its old bytes or the new ones.
            fail(round_, f"{writer.doing}: {file.name} has {describe(found)}, and not {describe(file.now)}")
        file.found = found
    moving = writer.state["moving"]
    if moving:
        source, target, bytes_of = moving
        if bytes_of not in (source.found, target.found) and not {source.name, target.name} & set(is_foreign):
            fail(round_, f"{source.name} was lost in a rename to {target.name}")
    writer.state["moving"] = None
    for file in writer.state["files"]:
        file.settle(file.found)
    tree = writer.state["tree"]
    if tree["is_making"]:
        for name in (tree["name"], tree["other"]):
            shutil.rmtree(f"{mnt}/{name}", ignore_errors=True)
        tree["is_making"] = False
    elif tree["bodies"] is not None:
        places = [tree["name"]] + ([tree["to"]] if tree["to"] else [])
        whole = []
        for place in places:
            there = {name: store.get(key(f"{place}/{name}")) for name in tree["bodies"]}
            if there == tree["bodies"]:
                whole.append(place)
            elif any(body is not None for body in there.values()):
                fail(round_, f"a directory was partly renamed: {place}")
        if len(whole) != 1:
            fail(round_, f"a directory is in {len(whole)} places of {places}")
        if whole[0] != tree["name"]:
            tree["name"], tree["other"] = tree["other"], tree["name"]
        tree["to"] = None


def conflicts():
    listed = subprocess.run([ogive, "bucket", "conflicts", stage], capture_output=True, text=True, check=False)
    return listed.stdout + listed.stderr


def main():
    for directory in (mnt, f"{work}/export"):
        os.makedirs(directory, exist_ok=True)
    states = []
    for number in range(3):
        files = [File(f"w{number}-{name}") for name in "abc"]
        tree = {"name": f"w{number}-tree", "other": f"w{number}-moved"}
        tree.update({"bodies": None, "to": None, "is_making": False})
        states.append({"files": files, "moving": None, "tree": tree})
    writers, is_foreign = [], {}
    began = time.monotonic()
    kills = 0
    for round_ in range(rounds + 1):
        to_journal = dice.random() < 0.25
        trail.append(f"round {round_}, {'journal' if to_journal else 'upload'}")
        while dice.random() < 0.15:
            # Killed during the mount, which recovers pending uploads.
            daemon = start(to_journal)
            time.sleep(dice.uniform(0, 0.5))
            end(daemon)
            kills += 1
            count("killed while mounting")
        daemon = start(to_journal)
        wait_mounted(daemon)
        wait_uploaded()
        for writer in writers:
            check_after(round_, writer, is_foreign)
        if left := store.uploads(prefix + "/"):
            fail(round_, f"multipart uploads are left: {left}")
        if is_foreign:
            listed = conflicts()
            for name in [name for name, ours in theirs_met.items() if ours]:
                if name not in listed:
                    fail(round_, f"our bytes of {name} are not among the conflicts: {listed}")
                count("conflicts kept")
        if round_ == rounds:
            break
        is_foreign, theirs_met = {}, {}
        writers = [Writer(number, state, to_journal) for number, state in enumerate(states)]
        for writer in writers:
            writer.start()
        time.sleep(dice.uniform(0, 1.5))
        for writer in writers:
            writer.is_over = True
        end(daemon)
        kills += 1
        count("killed while writing")
        for writer in writers:
            writer.join(60)
            if writer.is_alive():
                fail(round_, f"{writer.doing} hangs after its daemon is gone")
            if writer.error:
                fail(round_, writer.error)
            count(f"killed in {writer.doing}")
            for file in writer.state["files"]:
                found = check_store(round_, file)
                # Another client writes before the next mount.
                if dice.random() < 0.02 and not writer.state["moving"] and not file.pending:
                    body = dice.randbytes(1000)
                    store.put(key(file.name), body)
                    is_foreign[file.name] = body
                    theirs_met[file.name] = file.now is not None and found != file.now
    daemon.send_signal(signal.SIGTERM)
    if daemon.wait(60) != 0:
        fail(rounds, "unmounting fails")
    logs = [each for each in os.listdir(stage) if each.startswith("staged")]
    held = sum(len(os.listdir(f"{stage}/{each}")) for each in logs if os.path.isdir(f"{stage}/{each}"))
    if held:
        fail(rounds, f"{held} logs are left in the stage")
    for each in sorted(tallies):
        print(f"  {each}: {tallies[each]}")
    print(f"{kills} kills, {time.monotonic() - began:.0f} s, seed {seed}: all acknowledged writes are there")


main()
