#!/usr/bin/env python3
"""Makes the doctor's atlas: facts about OpenZFS and Linux, from their public histories.

    generate.py --openzfs REPOSITORY --spl REPOSITORY [--linux TREE] [--out DIRECTORY]

REPOSITORY is a clone of github.com/openzfs/zfs, and of github.com/openzfs/spl, with tags. TREE is an
unpacked source of Linux (Debian's linux-source). Without an argument, its files do not change. Needs
Python 3.11 or newer and universal-ctags 5.9. The atlas has only facts (names, numbers and dates), and
no text or code of these projects.
"""

import argparse
import pathlib

import fixes
import functions
import history
import linux
import maps
import names
import threads

FIRST = "0.6.1"


def main():
    here = pathlib.Path(__file__).parent
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--openzfs", type=pathlib.Path)
    options.add_argument("--spl", type=pathlib.Path)
    options.add_argument("--linux", type=pathlib.Path)
    options.add_argument("--out", type=pathlib.Path, default=here)
    args = options.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    openzfs = maps.Map(here / "openzfs.map")
    kernel = maps.Map(here / "linux.map")
    roles = maps.Map(here / "threads.map")
    # Subsystems of both, such as zlib, have one name; those of Linux alone are below kernel/.
    kernel.within("kernel/", openzfs.does)
    shared = kernel.does
    made = "Made by generate.py; change the maps or the script, not this file."
    history.write(args.out / "subsystems.txt", [made, "Subsystem: what it does."],
                  [f"{name}: {does}" for name, does in sorted((shared | openzfs.does).items())])
    history.write(args.out / "roles.txt", [made, "Role of a thread: what it does."],
                  [f"{name}: {does}" for name, does in sorted(roles.does.items())])
    if args.openzfs and args.spl:
        zfs = history.releases(args.openzfs, "zfs-", FIRST)
        spl = history.releases(args.spl, "spl-", FIRST)
        present, order = functions.collect([(args.openzfs, zfs), (args.spl, spl)])
        history.write(args.out / "releases.txt", [made, "Releases of OpenZFS, oldest first."], order)
        history.write(
            args.out / "openzfs-functions.txt",
            [made, "Functions of OpenZFS and SPL. \"= SUBSYSTEM FILE MODULE SYSTEM\" heads the functions of",
             "one file; behind a function stand the releases that have it, nothing for all of them."],
            functions.lines(present, order, openzfs))
        facts, tunables = names.collect([(args.openzfs, zfs), (args.spl, spl)])
        history.write(
            args.out / "names.txt",
            [made, "Properties and pool features, below \"= KIND\"; behind each the releases that have it."],
            names.name_lines(facts, order))
        history.write(
            args.out / "tunables.txt",
            [made, "Tunables: name (Linux, and zfs:NAME in illumos's /etc/system), type, rw or ro, default,",
             "FreeBSD's sysctl, the percentage that it wins over if it is not zero, releases."],
            names.tunable_lines(tunables, order))
        history.write(
            args.out / "fixes.txt",
            [made, "Commits that rules cite as fixes (../rules), and the first releases that contain each or its",
             "backport, one a branch, up to the branch that has it from its beginning; none: not released."],
            fixes.lines([(args.openzfs, zfs), (args.spl, spl)], here.parent / "rules", order))
        named, paths = threads.collect([(args.openzfs, zfs), (args.spl, spl)])
        history.write(
            args.out / "threads.txt",
            [made, "Threads and task queues, and beginnings of their names (with a star), below \"= ROLE\";",
             "behind one of OpenZFS's stand the releases that have it, nothing for all of them."],
            threads.lines(named, paths, order, roles))
    if args.linux:
        history.write(
            args.out / "linux-functions.txt",
            [made, "Functions of Linux, and beginnings of their names (with a star), below \"= SUBSYSTEM\"."],
            linux.lines(args.linux, kernel))


if __name__ == "__main__":
    main()
