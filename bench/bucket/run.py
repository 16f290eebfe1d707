#!/usr/bin/env python3
"""Measures a bucket behind ogive and other programs that mount buckets.

usage: sudo bench/bucket/run.py [--rounds N] [--quick] [--ogive FILE]   measures, and writes the page
       bench/bucket/run.py --page                                       writes only the page
       bench/bucket/run.py --check                                      fails if the page is outdated

Peers are s3fs, rclone, geesefs and mount-s3, as far as they are on the PATH. The store is MinIO on
loopback; rows with a delay reach it through toxiproxy. It reports and leaves out missing programs.

A round mounts each program in turn, so that other load affects all of them. Ratios are taken within
a round. A separate pass counts bytes and requests, by a forwarder between the program and the
store, and measures no time. Results: bench/results/bucket.jsonl.
"""

import argparse
import concurrent.futures
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
RESULTS = BENCH / "results" / "bucket.jsonl"
PAGE = BENCH / "results" / "bucket.md"
sys.path.insert(0, str(BENCH.parent / "tests" / "bucket"))

KEYS = {"AWS_ACCESS_KEY_ID": "testtest", "AWS_SECRET_ACCESS_KEY": "testtest12"}
ENVIRONMENT = {**os.environ, **KEYS, "AWS_REGION": "us-east-1", "NO_PROXY": "*", "no_proxy": "*"}
# rclone refuses to start with this variable.
ENVIRONMENT.pop("AWS_CA_BUNDLE", None)
RECORD = 128 << 10


def commands(ogive, endpoint, mount, work):
    """The command of each program, in the foreground, with the settings its authors advise for speed."""
    return {
        "ogive": [ogive, "mount", "--foreground", "--arc-max", "1G", "--endpoint-url", endpoint,
                  "s3://bench", mount],
        "s3fs": ["s3fs", "bench", mount, "-f", "-o", f"passwd_file={work}/passwd,url={endpoint}",
                 "-o", "use_path_request_style,parallel_count=32,multipart_size=16",
                 "-o", "max_stat_cache_size=200000,enable_noobj_cache"],
        "rclone": ["rclone", "mount", "--config", f"{work}/rclone.conf", "--read-only",
                   "--use-server-modtime", "--vfs-cache-mode", "full", "--vfs-read-ahead", "128M",
                   "--buffer-size", "32M", "--cache-dir", f"{work}/rclone", "store:bench", mount],
        "geesefs": ["geesefs", "-f", "--memory-limit", "1000", "--max-flushers", "32",
                    "--max-parallel-parts", "32", "--part-sizes", "25", "--endpoint", endpoint,
                    "bench", mount],
        "mount-s3": ["mount-s3", "bench", mount, "-f", "--endpoint-url", endpoint, "--force-path-style",
                     "--maximum-throughput-gbps", "10"],
    }


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"nothing listens at port {port}")


class Forwarder(threading.Thread):
    """A TCP forwarder that counts requests and received bytes."""

    def __init__(self, to):
        super().__init__(daemon=True)
        self.to, self.received, self.requests = to, 0, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]

    def run(self):
        while True:
            here, _ = self.listening.accept()
            there = socket.create_connection(("127.0.0.1", self.to))
            for source, target, is_up in ((here, there, True), (there, here, False)):
                threading.Thread(target=self.pump, args=(source, target, is_up), daemon=True).start()

    def pump(self, source, target, is_up):
        methods = (b"GET ", b"HEAD ", b"PUT ", b"POST ", b"DELETE ")
        try:
            while piece := source.recv(1 << 20):
                if is_up:
                    # No client sends a request before the last answer, so each begins a piece.
                    self.requests += piece.startswith(methods)
                else:
                    self.received += len(piece)
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()
            target.close()


class Mounted:
    def __init__(self, command, mount, work):
        self.mount = mount
        log = open(f"{work}/mount.log", "ab")
        self.process = subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log)
        for _ in range(600):
            if os.path.ismount(mount):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"{command[0]} does not mount: see {work}/mount.log")

    def cpu(self):
        """CPU seconds of all threads, by the process's CPU clock (clock_getcpuclockid(3))."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def peak_mib(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def end(self):
        subprocess.run(["umount", self.mount], check=False, capture_output=True)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        subprocess.run(["umount", "--lazy", self.mount], check=False, capture_output=True)


def read_all(path):
    """Reads a file in order and returns its size."""
    total = 0
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(1 << 20):
            total += len(piece)
    return total


def read_at_random(path, seconds, reads, jobs=8):
    """Reads records at random; returns the number of reads and the seconds."""
    size = os.path.getsize(path)
    until = time.monotonic() + seconds

    def job(seed):
        dice, done = random.Random(seed), 0
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        while done < reads / jobs and time.monotonic() < until:
            os.pread(descriptor, RECORD, dice.randrange(size // RECORD) * RECORD)
            done += 1
        os.close(descriptor)
        return done

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        done = sum(pool.map(job, range(jobs)))
    return done, time.monotonic() - began


def timed(act):
    began = time.monotonic()
    value = act()
    return time.monotonic() - began, value


def measure(mounting, sizes, is_far):
    """Measures one program once; returns its figures by name."""
    row = {"load": os.getloadavg()[0]}
    mounted = mounting()
    try:
        # Some programs send a request for each name, which takes minutes with a delay.
        directory, expected = ("few", sizes["few"]) if is_far else ("many", sizes["names"])
        row["list_s"], names = timed(lambda: subprocess.run(
            ["ls", "-l", f"{mounted.mount}/{directory}"], capture_output=True, check=True
        ).stdout.count(b"\n"))
        if names < expected:
            raise RuntimeError(f"{names} names")
        count = sizes["small"] // (4 if is_far else 1)
        small = [f"{mounted.mount}/small/{number:04}" for number in range(count)]
        for name in ("small_cold_ms", "small_again_ms"):
            took, _ = timed(lambda: [read_all(path) for path in small])
            row[name] = took * 1000 / len(small)
    finally:
        mounted.end()
    mounted = mounting()
    try:
        before = mounted.cpu()
        took, size = timed(lambda: read_all(f"{mounted.mount}/big"))
        row["sequential_mb_s"] = size / took / 1e6
        row["sequential_cpu_s_gb"] = (mounted.cpu() - before) / (size / 1e9)
        took, size = timed(lambda: read_all(f"{mounted.mount}/big"))
        row["again_mb_s"] = size / took / 1e6
        row["peak_mib"] = mounted.peak_mib()
    finally:
        mounted.end()
    mounted = mounting()
    try:
        before = mounted.cpu()
        done, took = read_at_random(f"{mounted.mount}/big", 60, sizes["reads"])
        row["random_ops_s"] = done / took
        row["random_cpu_s_gb"] = (mounted.cpu() - before) / (done * RECORD / 1e9)
    finally:
        mounted.end()
    return row


def count(mounting, forwarder, sizes):
    """Counts the requests and bytes of one program."""
    row = {}

    def counted(name, read_bytes, act):
        received, requests = forwarder.received, forwarder.requests
        act()
        time.sleep(0.5)
        row[f"{name}_requests"] = forwarder.requests - requests
        if read_bytes:
            row[f"{name}_bytes"] = (forwarder.received - received) / read_bytes

    for name, read_bytes, act in (
        ("list", 0, lambda at: subprocess.run(["ls", "-l", f"{at}/many"], capture_output=True, check=True)),
        ("sequential", sizes["big"], lambda at: read_all(f"{at}/big")),
        ("random", 64 * RECORD, lambda at: read_at_random(f"{at}/big", 60, 64)),
        ("small", 0, lambda at: [read_all(f"{at}/small/{number:04}") for number in range(sizes["counted"])]),
    ):
        mounted = mounting()
        try:
            counted(name, read_bytes, lambda: act(mounted.mount))
        finally:
            mounted.end()
    return row


def fill(port, sizes):
    from s3_client import Store

    os.environ.update(KEYS)
    store = Store("bench", f"http://127.0.0.1:{port}")
    store.ask("PUT")
    dice = random.Random(1)
    store.put("big", b"".join(dice.randbytes(1 << 20) for _ in range(sizes["big"] >> 20)))
    # s3fs shows a directory only if it has a marker object.
    for name in ("many/", "few/", "small/"):
        store.put(name, b"")
    body = dice.randbytes(1024)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.put(f"many/{number:05}", body), range(sizes["names"])))
        list(pool.map(lambda number: store.put(f"few/{number:05}", body), range(sizes["few"])))
        list(pool.map(lambda number: store.put(f"small/{number:04}", body * 4), range(sizes["small"])))


def run(args):
    commit = subprocess.check_output([BENCH / "commit.sh"], text=True).strip()
    work = tempfile.mkdtemp(prefix="ogive-bench-bucket.", dir="/var/tmp")
    mount, servers = f"{work}/mnt", []
    sizes = {"big": 512 << 20, "names": 10_000, "few": 1_000, "small": 200, "reads": 1_600, "counted": 50}
    if args.quick:
        sizes = {"big": 32 << 20, "names": 1_000, "few": 100, "small": 20, "reads": 80, "counted": 20}
    rows = []
    try:
        os.makedirs(mount)
        with open(f"{work}/passwd", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("testtest:testtest12")
        port, delayed, control = free_port(), free_port(), free_port()
        serving = {**ENVIRONMENT, "MINIO_ROOT_USER": "testtest", "MINIO_ROOT_PASSWORD": "testtest12"}
        servers.append(subprocess.Popen(
            ["minio", "server", "--quiet", "--address", f"127.0.0.1:{port}", f"{work}/objects"],
            env=serving, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        wait_for(port)
        time.sleep(2)
        fill(port, sizes)
        ways = {"loopback": port}
        if shutil.which("toxiproxy-server"):
            servers.append(subprocess.Popen(
                ["toxiproxy-server", "-host", "127.0.0.1", "-port", str(control)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            wait_for(control)
            for path, body in (
                ("/proxies", {"name": "store", "listen": f"127.0.0.1:{delayed}",
                              "upstream": f"127.0.0.1:{port}"}),
                ("/proxies/store/toxics", {"name": "far", "type": "latency",
                                           "attributes": {"latency": 20}}),
            ):
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                opener.open(f"http://127.0.0.1:{control}{path}", json.dumps(body).encode()).read()
            ways["20 ms"] = delayed
        forwarder = Forwarder(port)
        forwarder.start()
        programs = commands(args.ogive, "", "", work)
        peers = [name for name, command in programs.items() if name == "ogive" or shutil.which(command[0])]
        for name in programs:
            if name not in peers:
                print(f"{name} is not on the PATH and is left out")

        def mounting(name, at):
            def begin():
                shutil.rmtree(f"{work}/rclone", ignore_errors=True)
                endpoint = f"http://127.0.0.1:{at}"
                with open(f"{work}/rclone.conf", "w") as file:
                    file.write("[store]\ntype = s3\nprovider = Minio\naccess_key_id = testtest\n"
                               f"secret_access_key = testtest12\nendpoint = {endpoint}\n")
                return Mounted(commands(args.ogive, endpoint, mount, work)[name], mount, work)
            return begin

        for name in peers:
            print(f"counting {name}", flush=True)
            try:
                row = count(mounting(name, forwarder.port), forwarder, sizes)
                rows.append({"peer": name, "way": "counted", **row})
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                print(f"{name}: {error}")
        for round_ in range(args.rounds):
            for way, at in ways.items():
                # Each round begins with another program.
                for name in peers[round_ % len(peers):] + peers[: round_ % len(peers)]:
                    print(f"round {round_ + 1}, {way}, {name}", flush=True)
                    try:
                        row = measure(mounting(name, at), sizes, way != "loopback")
                        rows.append({"peer": name, "way": way, "round": round_, **row})
                    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                        print(f"{name}: {error}")
    finally:
        for server in servers:
            server.send_signal(signal.SIGKILL)
            server.wait()
        shutil.rmtree(work, ignore_errors=True)

    def version(command):
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        return (found.stdout + found.stderr).strip().splitlines()[0]

    header = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit,
        "cpus": os.cpu_count(),
        "kernel": os.uname().release,
        "rounds": args.rounds,
        "sizes": sizes,
        "versions": {name: version([programs[name][0], "version" if name == "rclone" else "--version"])
                     for name in peers},
        "settings": {name: " ".join(programs[name][1:]).replace(work, "DIR") for name in peers},
    }
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in [{"header": header}, *rows]))


FIGURES = [
    ("sequential_mb_s", "a large object in order, cold, MB/s", "{:.0f}", True),
    ("sequential_cpu_s_gb", "CPU of these reads, s/GB", "{:.2f}", False),
    ("again_mb_s", "the same again, MB/s", "{:.0f}", True),
    ("random_ops_s", "128 KiB at random, 8 at a time, cold, reads/s", "{:.0f}", True),
    ("random_cpu_s_gb", "CPU of these reads, s/GB read", "{:.2f}", False),
    ("list_s", "`ls -l` of all names, cold, s", "{:.2f}", False),
    ("small_cold_ms", "files of 4 KiB one by one, cold, ms each", "{:.1f}", False),
    ("small_again_ms", "the same again, ms each", "{:.2f}", False),
    ("peak_mib", "peak resident memory, after reading in order, MiB", "{:.0f}", False),
]
COUNTED = [
    ("sequential_requests", "requests, a large object in order", "{:.0f}"),
    ("sequential_bytes", "bytes received for each byte read", "{:.2f}"),
    ("random_requests", "requests, 64 reads of 128 KiB at random", "{:.0f}"),
    ("random_bytes", "bytes received for each byte read", "{:.2f}"),
    ("list_requests", "requests, `ls -l` of all names", "{:.0f}"),
    ("small_requests", "requests, 50 files of 4 KiB one by one", "{:.0f}"),
]


def spread(values, form):
    text = form.format(statistics.median(values))
    return text if len(values) == 1 else f"{text} ({form.format(min(values))} to {form.format(max(values))})"


# Aims: figure, way, label, bound, whether more is better, whether it is a ratio to the best peer.
AIMS = [
    ("sequential_mb_s", "loopback", "in order, cold, ratio to the best peer", 1.4, True, True),
    ("sequential_mb_s", "20 ms", "the same with 20 ms", 1.4, True, True),
    ("sequential_cpu_s_gb", "loopback", "CPU in order, s/GB", 0.6, False, False),
    ("random_cpu_s_gb", "loopback", "CPU of 128 KiB at random, s/GB", 1.2, False, False),
    ("random_ops_s", "20 ms", "reads/s at random with 20 ms; 8 readers can reach 400", 380,
     True, False),
    ("random_bytes", "counted", "bytes received for each byte read at random", 1.1, False, False),
    ("list_requests", "counted", "requests for `ls -l` of 10,000 names and a marker, with lookups",
     10, False, False),
    ("small_cold_ms", "20 ms", "a small file with 20 ms, ms", 22, False, False),
]


def aims(rows):
    text = ["## Aims", "", "| | aim | measured | |", "|---|---|---|---|"]
    for name, way, label, bound, is_more, is_ratio in AIMS:
        measured = [row for row in rows if row["way"] == way and name in row]
        ours = [row for row in measured if row["peer"] == "ogive"]
        values = [row[name] for row in ours]
        if is_ratio:
            best = {}
            for row in measured:
                if row["peer"] != "ogive":
                    best[row["round"]] = max(best.get(row["round"], 0), row[name])
            values = [row[name] / best[row["round"]] for row in ours if best.get(row["round"])]
        if not values:
            continue
        value = statistics.median(values)
        is_met = value >= bound if is_more else value <= bound
        sign = "at least" if is_more else "at most"
        text.append(f"| {label} | {sign} {bound} | {value:.3g} | {'met' if is_met else 'missed'} |")
    return text + [""]


def page():
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    header, rows = lines[0]["header"], lines[1:]
    peers = list(header["versions"])
    sizes = header["sizes"]
    loads = [row["load"] for row in rows if "load" in row]
    text = ["# A bucket behind ogive and other programs", "",
            "<!-- Written by bench/bucket/run.py from bucket.jsonl. Do not edit. -->", "",
            f"{header['date']}, commit {header.get('commit', 'unknown')}, {header['cpus']} processors, "
            f"Linux {header['kernel']}, MinIO on the same machine. The load was {min(loads):.1f} to {max(loads):.1f}, including the store "
            "and the programs, so rates are",
            "lower bounds. Trust the ratios (taken within a round), the CPU and the counts.",
            f"A value is a median of {header['rounds']} rounds, with minimum and maximum.", "",
            f"The object has {sizes['big'] >> 20} MiB, the directory {sizes['names']:,} names "
            f"({sizes['few']:,} with the delay, because some",
            f"programs send a request for each). {sizes['small']} small files are read "
            f"({sizes['small'] // 4} with the delay), and {sizes['reads']} records at random. Each cold",
            "figure is from a fresh mount. The other programs fetch more than each random read needs,",
            "and serve later reads from that: look at the counts before the rates.", ""]
    for way in ("loopback", "20 ms"):
        measured = [row for row in rows if row["way"] == way]
        if not measured:
            continue
        text += [f"## {'On loopback' if way == 'loopback' else 'With 20 ms of delay'}", "",
                 "| | " + " | ".join(peers) + " | ogive / best peer |", "|---" * (len(peers) + 2) + "|"]
        for name, label, form, is_more_better in FIGURES:
            of = {peer: {row["round"]: row[name] for row in measured if row["peer"] == peer and name in row}
                  for peer in peers}
            cells = [spread(list(of[peer].values()), form) if of[peer] else "-" for peer in peers]
            ratios = []
            for round_, ours in of["ogive"].items():
                others = [of[peer][round_] for peer in peers if peer != "ogive" and round_ in of[peer]]
                if others:
                    best = max(others) if is_more_better else min(others)
                    ratios.append(ours / best if best else float("inf"))
            ratio = spread(ratios, "{:.2f}") if ratios else "-"
            better = "more is better" if is_more_better else "less is better"
            text.append(f"| {label} | " + " | ".join(cells) + f" | {ratio}, {better} |")
        text.append("")
    text += ["## Counts, in a separate pass", "",
             "| | " + " | ".join(peers) + " |", "|---" * (len(peers) + 1) + "|"]
    for name, label, form in COUNTED:
        of = {row["peer"]: row[name] for row in rows if row["way"] == "counted" and name in row}
        cells = [form.format(of[peer]) if peer in of else "-" for peer in peers]
        text.append(f"| {label} | " + " | ".join(cells) + " |")
    text += ["", *aims(rows), "## Settings", "",
             "As the authors of each program advise for speed; otherwise its defaults.", "",
             "| | version | command |", "|---|---|---|"]
    for peer in peers:
        text.append(f"| {peer} | {header['versions'][peer]} | `{header['settings'][peer].strip()}` |")
    missing = [name for name in ("s3fs", "rclone", "geesefs", "mount-s3") if name not in peers]
    if missing:
        text += ["", f"Not installed, so not measured: {', '.join(missing)}."]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Measures a bucket behind ogive and other programs.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--ogive", default=str(BENCH.parent / "target" / "release" / "ogive"))
    parser.add_argument("--page", action="store_true", help="write only the page")
    parser.add_argument("--check", action="store_true", help="fail if the page is outdated")
    args = parser.parse_args()
    if args.check:
        sys.exit(0 if PAGE.read_text() == page() else f"{PAGE} does not match {RESULTS}: run --page")
    if not args.page:
        run(args)
    PAGE.write_text(page())


main()
