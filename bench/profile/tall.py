#!/usr/bin/env python3
"""Writes output of "perf script" whose flame graph is taller than a window.

It has threads of two roles for two seconds. Most stacks have 70 functions with names, and one has 70
without names.
"""

DEPTH = 70
THREADS = ["z_rd_int", "fuse-1", "java"]


def sample(thread: str, number: int) -> None:
    time = 100 + number / 100
    print(f"{thread} {1000 + THREADS.index(thread)} [000] {time:.6f}: 10101010 cpu-clock: ")
    for depth in range(DEPTH):
        # Leaf first. All stacks have the same callers, so that boxes are wide.
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
