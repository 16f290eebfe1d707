"""Collects functions of OpenZFS and SPL: file, module, subsystem and releases."""

import os
import re
import subprocess
import tempfile

import history

SOURCES = r"^(module/.*\.(c|S|h)|include/sys/[^/]*\.h)$"
# Assembly names its functions in one of these ways.
ASSEMBLY = re.compile(
    r"^\s*(?:ENTRY(?:_NP|_ALIGN)?|FUNCTION|SET_SIZE|ASM_FUNC)\s*\(\s*(\w+)|^\s*\.glob[l]?\s+_?(\w+)"
    r"|^\s*\.type\s+_?(\w+)\s*,\s*[@%]function", re.M)
# Macros of OpenZFS that define functions, which a parser cannot see.
RAIDZ = re.compile(r"DEFINE_(GEN|REC)_METHODS\((\w+)\)")
CODES = {"GEN": ["gen_p", "gen_pq", "gen_pqr"],
         "REC": ["rec_p", "rec_q", "rec_r", "rec_pq", "rec_pr", "rec_qr", "rec_pqr"]}
MODULES = [
    ("module/os/linux/spl/", "spl"), ("module/os/freebsd/", "opensolaris"), ("module/spl/", "spl"),
    ("module/avl/", "zavl"), ("module/nvpair/", "znvpair"), ("module/unicode/", "zunicode"),
    ("module/zcommon/", "zcommon"), ("module/lua/", "zlua"), ("module/zstd/", "zzstd"),
    ("module/icp/", "icp"), ("module/", "zfs"), ("include/", "zfs"),
]


def tags(directory, paths):
    """Returns path and name of the functions in C files, from universal-ctags."""
    listed = os.path.join(directory, "files")
    with open(listed, "w") as out:
        out.write("\n".join(paths))
    text = subprocess.run(
        ["ctags", "--options=NONE", "--languages=C", "--langmap=C:.c.h", "--kinds-C=f",
         "-I", "__attribute__+,noinline,__maybe_unused,inline,FORCE_INLINE_TEMPLATE=static",
         "--sort=no", "-x", "--_xformat=%F\t%N", "-L", listed],
        check=True, capture_output=True, text=True, errors="replace").stdout
    return [line.split("\t") for line in text.splitlines() if "\t" in line]


def of_blobs(repository, blobs):
    """Returns the names of functions in each blob; `blobs` has the file ending of each."""
    found = {blob: set() for blob in blobs}
    with tempfile.TemporaryDirectory() as directory:
        parsed = []
        for blob, text in history.contents(repository, blobs):
            if blobs[blob] == "S":
                for names in ASSEMBLY.findall(text):
                    found[blob].update(name for name in names if name)
                continue
            for kind, implementation in RAIDZ.findall(text):
                found[blob].update(f"{implementation}_{code}" for code in CODES[kind])
            path = os.path.join(directory, f"{blob}.{blobs[blob]}")
            with open(path, "w") as out:
                out.write(text)
            parsed.append(path)
        for path, name in tags(directory, parsed):
            found[os.path.basename(path).split(".")[0]].add(name)
    return found


def system(path):
    """Returns the system of a file, if only one system builds it."""
    for name in ("linux", "freebsd"):
        if f"os/{name}/" in path:
            return name
    return ""


def module(path):
    """Returns the kernel module of a file, before 2.2.0 joined the modules."""
    return next(name for start, name in MODULES if path.startswith(start))


def collect(sources):
    """Collects functions from pairs of a repository and its releases.

    Returns (name, path) -> set of releases, and the order of the releases.
    """
    present, order = {}, []
    for repository, released in sources:
        trees = {version: history.files(repository, tag, SOURCES) for version, tag in released}
        blobs = {blob: path.rsplit(".", 1)[1]
                 for tree in trees.values() for path, blob in tree.items()}
        names = of_blobs(repository, blobs)
        for version, tree in trees.items():
            for path, blob in tree.items():
                for name in names[blob]:
                    present.setdefault((name, path), set()).add(version)
        order = sorted(set(order) | set(trees), key=history.number)
    return present, order


def lines(present, order, atlas):
    """Returns the file's lines: functions below headings of subsystem, file, module and system."""
    groups = {}
    for (name, path), releases in present.items():
        # Names of the compiler, of macros and of one or two letters are useless.
        if not re.fullmatch(r"[A-Za-z_]\w{2,}", name) or name.isupper():
            continue
        subsystem = atlas.subsystem(path, name)
        if subsystem is None:
            raise SystemExit(f"no subsystem for {name} of {path}: complete openzfs.map")
        key = (subsystem, os.path.basename(path), module(path), system(path))
        groups.setdefault(key, {}).setdefault(name, set()).update(releases)
    out = []
    for key in sorted(groups):
        out.append("= " + " ".join(part or "any" for part in key))
        for name in sorted(groups[key]):
            out.append(f"{name} {history.runs(groups[key][name], order)}".rstrip())
    return out
