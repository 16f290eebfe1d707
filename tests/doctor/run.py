"""Runs loads and the doctor, and compares its answers with the CPU times of control groups."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import command_line
from loads import LOADS

OGIVE = os.environ["OGIVE"]
TICKS = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count()
CODES = (0, 7, 8, 9)
# Tolerances: the doctor's measurement and ours do not begin and end at the same moment.
CLOSE_CPUS, CLOSE_PART = 0.15, 0.3
# The doctor need not name a user of less CPU.
WORTH_A_NAME = 0.3


class Group:
    """A control group of version 2, or of the controllers of version 1."""

    def __init__(self, name):
        root = "/sys/fs/cgroup"
        if os.path.exists(f"{root}/cgroup.controllers"):
            self.paths = {"all": f"{root}/{name}"}
            try:
                with open(f"{root}/cgroup.subtree_control", "w") as f:
                    f.write("+cpu +memory")
            except OSError:
                pass
        else:
            kinds = ("cpu", "cpuacct", "memory", "pids")
            there = [kind for kind in kinds if os.path.isdir(f"{root}/{kind}")]
            self.paths = {kind: f"{root}/{kind}/{name}" for kind in there}
        if not self.paths:
            print("skipped: no control groups on this machine")
            sys.exit(77)
        for path in self.paths.values():
            os.makedirs(path, exist_ok=True)

    def path(self, kind):
        return self.paths.get("all") or self.paths.get(kind)

    def write(self, kind, file, text):
        with open(f"{self.path(kind)}/{file}", "w") as f:
            f.write(str(text))

    def limit(self, load):
        if load.cpus is not None:
            quota = int(load.cpus * 100_000)
            if "all" in self.paths:
                self.write("cpu", "cpu.max", f"{quota} 100000")
            else:
                self.write("cpu", "cpu.cfs_quota_us", quota)
        if load.memory is not None:
            file = "memory.max" if "all" in self.paths else "memory.limit_in_bytes"
            self.write("memory", file, load.memory)

    def enter(self):
        for path in self.paths.values():
            with open(f"{path}/cgroup.procs", "w") as f:
                f.write("0")

    def used_s(self):
        if "all" in self.paths:
            with open(f"{self.paths['all']}/cpu.stat") as f:
                return int(re.search(r"usage_usec (\d+)", f.read())[1]) / 1e6
        with open(f"{self.path('cpuacct')}/cpuacct.usage") as f:
            return int(f.read()) / 1e9

    def members(self):
        found = set()
        for path in self.paths.values():
            with open(f"{path}/cgroup.procs") as f:
                found |= {int(line) for line in f}
        return found

    def end(self):
        deadline = time.monotonic() + 30
        while (members := self.members()) and time.monotonic() < deadline:
            for pid in members:
                for kind in (signal.SIGCONT, signal.SIGKILL):
                    try:
                        os.kill(pid, kind)
                    except ProcessLookupError:
                        pass
            time.sleep(0.05)
        for path in self.paths.values():
            try:
                os.rmdir(path)
            except OSError:
                pass


def machine():
    """Returns seconds since the start, of all CPUs: (busy, waiting for disks)."""
    with open("/proc/stat") as f:
        parts = [int(word) / TICKS for word in f.readline().split()[1:9]]
    user, nice, system, _idle, iowait, irq, softirq, steal = parts
    return user + nice + system + irq + softirq + steal, iowait


def children_s():
    """Returns the CPU seconds of all finished children, which are the doctor's processes."""
    times = os.times()
    return times.children_user + times.children_system


def outputs(load, work, seconds):
    """Runs the load's tool, and returns the path of its output."""
    if load.ask.startswith("perf"):
        graph = "--call-graph=dwarf" if load.ask == "perf-dwarf" else "-g"
        command = ["perf", "record", "-a", graph, "-F", "99", "-o", "perf.data"]
        command += ["--", "sleep", str(seconds)]
        subprocess.run(command, cwd=work, check=True, capture_output=True)
        return f"{work}/perf.data"
    path = f"{work}/output.txt"
    with open(path, "w") as f:
        subprocess.run(load.ask.split(), stdout=f, check=True, cwd=work)
    return path


def ask(load, way, work, seconds):
    """Runs the doctor; returns the finished process."""
    doctor = [OGIVE, "doctor", "--json"]
    look = ["--for", f"{seconds}s"]
    if load.output:
        return subprocess.run([*doctor, outputs(load, work, seconds)], capture_output=True)
    target = [f"{work}/{load.ask}"] if load.ask else []
    if way == "capture":
        bundle = f"{work}/capture.tar.zst"
        capture = [OGIVE, "capture", "-o", bundle, *look, *target]
        taken = subprocess.run(capture, capture_output=True)
        if taken.returncode:
            return taken
        answer = subprocess.run([*doctor, bundle], capture_output=True)
        os.remove(bundle)
        return answer
    if way == "user":
        doctor = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *doctor]
    return subprocess.run([*doctor, *look, *target], capture_output=True)


def faults(load, answer, code, truth):
    """Returns the faults of an answer, as sentences."""
    found = []
    if code not in CODES:
        return [f"exit code {code}"]
    cpus, own, elapsed = truth["busy"], truth["own"], truth["elapsed"]
    line = answer["sentence"]
    if load.never and re.search(load.never, line):
        found.append(f"the first line matches /{load.never}/")
    given = answer["answers"]
    if given["zfs"]["among"] == "yes" and given["zfs"]["name"] == "ZFS":
        found.append("the answer blames ZFS, which is not loaded")
    of_others = cpus - own
    dominant = own >= max(WORTH_A_NAME, 1.5 * of_others)
    limited = load.cpus is not None or load.memory is not None or load.ask and not load.output
    # A load that waits must be in the first line, unless other programs are busy.
    waits = own < WORTH_A_NAME and of_others < WORTH_A_NAME
    if load.says and (dominant or limited or waits) and not re.search(load.says, line):
        found.append(f"the first line does not match /{load.says}/")
    users = given["users"]["list"]
    if load.user and dominant:
        first = users[0]["name"] if users else "none"
        if not re.search(load.user, first):
            found.append(f"the first user is {first}, not {load.user}")
        elif not load.output and users[0].get("cpus") is not None:
            names = [u for u in users if re.search(load.user, u["name"])]
            reported = sum(u["cpus"] or 0 for u in names)
            if abs(reported - own) > max(CLOSE_CPUS, CLOSE_PART * own):
                found.append(f"{load.user} used {own:.2f} CPUs, and {reported:.2f} are reported")
    if not load.output and elapsed > 1 and not load.ask:
        busy = given["cpu"].get("busy_cpus")
        close = max(CLOSE_CPUS, CLOSE_PART * cpus)
        # The doctor leaves its own work out, which is large in a debug build.
        if busy is None or not cpus - truth["doctor"] - close <= busy <= cpus + close:
            found.append(f"{cpus:.2f} CPUs were busy, and {busy} are reported")
        total = sum(u["cpus"] or 0 for u in users)
        if busy is not None and total > busy * 1.1 + 0.1:
            found.append(f"users add up to {total:.2f} CPUs of {busy:.2f}")
        hidden = sum(u["cpus"] or 0 for u in users if u["kind"] == "not shown")
        if hidden > max(0.3, 0.2 * cpus):
            found.append(f"{hidden:.2f} CPUs have no user")
    return found


def run(load, ways, seconds, keep):
    """Runs one load, and the doctor in each way; returns the numbers of answers and wrong ones."""
    missing = [program for program in load.needs if shutil.which(program) is None]
    if missing:
        print(f"{load.name}: skipped, no {', '.join(missing)} here")
        return 0, 0
    work = tempfile.mkdtemp(prefix="ogive-doctor.", dir="/var/tmp")
    os.chmod(work, 0o755)
    group = Group(f"ogive-doctor-{os.getpid()}-{load.name}")
    group.limit(load)
    wrong = answers = 0
    try:
        shell = subprocess.Popen(
            ["bash", "-c", load.script],
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OGIVE": OGIVE, "WORK": work},
            preexec_fn=group.enter,
            start_new_session=True,
        )
        time.sleep(4)
        for way in ways:
            if load.output and way != "live":
                continue
            before, own, waited = machine(), group.used_s(), time.monotonic()
            doctor = children_s()
            done = ask(load, way, work, seconds)
            after, elapsed = machine(), time.monotonic() - waited
            truth = {
                "elapsed": elapsed,
                "busy": (after[0] - before[0]) / elapsed,
                "own": (group.used_s() - own) / elapsed,
                "doctor": (children_s() - doctor) / elapsed,
            }
            try:
                answer = json.loads(done.stdout)
                bad = faults(load, answer, done.returncode, truth)
                line = answer["sentence"]
            except ValueError:
                errors = done.stderr.decode(errors="replace")
                line = errors.strip().replace("\n", " ")
                good = done.returncode not in CODES and load.says and re.search(load.says, errors)
                bad = [] if good else [f"no answer, exit code {done.returncode}"]
                answer = {"stderr": errors}
            answers += 1
            wrong += bool(bad)
            figures = f"{way}; busy {truth['busy']:.2f}, own {truth['own']:.2f}"
            print(f"{'FAILED' if bad else 'ok    '} {load.name} ({figures}): {line}")
            for fault in bad:
                print(f"         {fault}")
            sys.stdout.flush()
            if keep:
                os.makedirs(keep, exist_ok=True)
                with open(f"{keep}/{load.name}.{way}.json", "w") as f:
                    json.dump({"truth": truth, "faults": bad, "answer": answer}, f, indent=1)
        shell.poll()
    finally:
        group.end()
        with open("/proc/self/mountinfo") as f:
            mounts = [line.split()[4] for line in f]
        for mount in reversed([m for m in mounts if m.startswith(work + "/")]):
            subprocess.run(["umount", "-l", mount], capture_output=True)
        shutil.rmtree(work, ignore_errors=True)
    return answers, wrong


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--steady", action="store_true")
    parser.add_argument("--way", default="live", choices=("live", "user", "capture", "all"))
    parser.add_argument("--for", dest="seconds", type=int, default=5)
    parser.add_argument("--keep")
    args, chosen = command_line.chosen(parser, "load", LOADS)
    chosen = [one for one in chosen if one.steady or not args.steady]
    ways = ("live", "user", "capture") if args.way == "all" else (args.way,)
    answers = wrong = 0
    for load in chosen:
        given, bad = run(load, ways, args.seconds, args.keep)
        answers, wrong = answers + given, wrong + bad
    print(f"{answers} answers, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    sys.exit(main())
