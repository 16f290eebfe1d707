#!/usr/bin/env python3
"""Makes captures of a fleet: make.py OUT COUNT [SEED].

Each has two snapshots of /proc/stat, arcstats and 300 threads, a folded profile of 2,000 stacks, 300
parameters, and properties of 100 data sets. One host in ten reads an AES-CCM data set and runs an
older kernel. One bundle in a hundred is truncated.
"""

import io
import random
import sys
import tarfile
from pathlib import Path

STACKS = 2000
THREADS = 300
PARAMETERS = 300
DATA_SETS = 100

CCM = "z_rd_int;kthread;zio_execute;ccm_mode_decrypt_contiguous_blocks;aes_encrypt_block;kfpu_end"


def profile(rng: random.Random, ill: bool) -> str:
    lines = [f"{CCM} 9000"] if ill else ["md5sum;main;md5_process_block 9000"]
    for number in range(STACKS):
        depth = rng.randint(3, 20)
        frames = ";".join(f"function_{rng.randint(0, 800)}" for _ in range(depth))
        lines.append(f"program-{number % 40};main;{frames} {rng.randint(1, 5)}")
    return "\n".join(lines) + "\n"


def stat(ticks: int) -> str:
    rows = [f"cpu  {ticks} 0 {ticks * 2} {ticks} 0 0 0 0 0 0"]
    rows += [f"cpu{cpu} {ticks // 8} 0 {ticks // 4} {ticks // 8} 0 0 0 0 0 0" for cpu in range(8)]
    return "\n".join(rows) + "\n"


def arcstats(seconds: int, rng: random.Random) -> str:
    head = f"13 1 0x01 147 39984 4000000000 {seconds * 10**9}\nname type data\n"
    rows = [f"counter_{number} 4 {rng.randint(0, 10**6) * seconds}" for number in range(140)]
    return head + f"hits 4 {1000 * seconds}\nmisses 4 {10 * seconds}\nsize 4 {2**30}\n" + "\n".join(rows) + "\n"


def threads(ticks: int, ill: bool) -> str:
    rows = []
    for number in range(THREADS):
        name = "z_rd_int" if ill and number < 4 else f"program-{number % 40}"
        used = ticks if number < 4 else number % 3
        rows.append(f"{1000 + number} {1000 + number} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {used} 0 " + "0 " * 30)
    return "\n".join(rows) + "\n"


def files(number: int, rng: random.Random) -> dict[str, str]:
    ill = number % 10 == 0
    kernel = "5.15.0-91-generic" if ill or rng.random() < 0.1 else "6.1.0-18-amd64"
    cipher = "aes-256-ccm" if ill else "aes-256-gcm"
    properties = ["NAME PROPERTY VALUE SOURCE"]
    for data_set in range(DATA_SETS):
        properties.append(f"tank/d{data_set} encryption {cipher if data_set == 0 else 'off'} -")
        properties.append(f"tank/d{data_set} recordsize 128K default")
        properties.append(f"tank/d{data_set} compression {rng.choice(['lz4', 'off'])} local")
    parameters = [f"zfs/zfs_parameter_{index} {rng.choice([0, 1])}" for index in range(PARAMETERS)]
    return {
        "manifest.json": '{"format": "ogive capture", "version": 1}\n',
        "start/proc/stat": stat(1000),
        "start/proc/spl/kstat/zfs/arcstats": arcstats(100, random.Random(number)),
        "start/thread-stats.txt": threads(0, ill),
        "end/proc/stat": stat(5000),
        "end/proc/spl/kstat/zfs/arcstats": arcstats(110, random.Random(number)),
        "end/thread-stats.txt": threads(900, ill),
        "profile.folded": profile(rng, ill),
        "module-parameters.txt": "\n".join(parameters) + "\n",
        "commands/zfs-get.txt": "\n".join(properties) + "\n",
        "commands/zfs-version.txt": "zfs-2.1.11-1\nzfs-kmod-2.1.11-1\n",
        "commands/uname.txt": f"Linux host-{number} {kernel} #1 SMP x86_64 GNU/Linux\n",
    }


def bundle(number: int, rng: random.Random) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz", compresslevel=6, format=tarfile.GNU_FORMAT) as archive:
        for name, text in files(number, rng).items():
            content = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    packed = sink.getvalue()
    return packed[: len(packed) // 2] if number % 100 == 50 else packed


def main() -> None:
    out, count = Path(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    out.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (out / f"host-{number:04}.ogive").write_bytes(bundle(number, rng))


if __name__ == "__main__":
    main()
