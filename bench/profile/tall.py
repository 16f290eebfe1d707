#!/usr/bin/env python3
"""Writes a recording as the text of "perf script" whose flame graph is higher than a window: threads
of two roles for two seconds, stacks of 70 functions with names, and one of 70 without."""

DEPTH = 70
THREADS = ["z_rd_int", "fuse-1", "java"]


def sample(thread: str, number: int) -> None:
    time = 100 + number / 100
    print(f"{thread} {1000 + THREADS.index(thread)} [000] {time:.6f}: 10101010 cpu-clock: ")
    for depth in range(DEPTH):
        # Leaf first; the callers are the same, so that boxes are wide.
        name = f"leaf_{number % 3}" if depth == 0 else f"caller_{DEPTH - depth}"
        print(f"\tffffffff8100{depth:04x} {name}+0x10 ([kernel.kallsyms])")
    print()


def tower(number: int) -> None:
    print(f"java 1002 [001] {100 + number / 100:.6f}: 10101010 cpu-clock: ")
    for depth in range(DEPTH):
        print(f"\t{0x7f0000000000 + 4096 * depth:x} [unknown] (/usr/lib/libjvm.so)")
    print()


for at in range(200):
    sample(THREADS[at % len(THREADS)], at)
    tower(at)
