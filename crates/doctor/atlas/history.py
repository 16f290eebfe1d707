"""Reads a git repository: its releases, and each version of their files once."""

import pathlib
import re
import subprocess


def git(repository, *arguments, text=True):
    """Returns the output of a git command."""
    return subprocess.run(
        ["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=text,
        errors="replace" if text else None,
    ).stdout


def number(version):
    """Returns a version as numbers, for sorting."""
    return tuple(int(part) for part in version.split("."))


def releases(repository, prefix, first):
    """Returns pairs of version and tag, oldest first, without release candidates."""
    found = []
    for tag in git(repository, "tag").split():
        match = re.fullmatch(prefix + r"((?:\d+\.)+\d+)", tag)
        # 2.2.99 and the like mark the start of development.
        if match and not match[1].endswith(".99") and number(match[1]) >= number(first):
            found.append((match[1], tag))
    return sorted(found, key=lambda pair: number(pair[0]))


def files(repository, tag, pattern):
    """Returns matching paths of a release, with their blobs."""
    found = {}
    for line in git(repository, "ls-tree", "-r", tag).splitlines():
        head, path = line.split("\t", 1)
        if re.search(pattern, path):
            found[path] = head.split()[2]
    return found


def contents(repository, blobs):
    """Yields blobs with their contents, read by one git process."""
    process = subprocess.Popen(
        ["git", "-C", str(repository), "cat-file", "--batch"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    for blob in sorted(blobs):
        process.stdin.write(blob.encode() + b"\n")
        process.stdin.flush()
        head = process.stdout.readline().split()
        content = process.stdout.read(int(head[2]))
        process.stdout.read(1)
        yield blob, content.decode("utf-8", "replace")
    process.stdin.close()
    process.wait()


def runs(present, order):
    """Returns releases as ranges of all releases: "0.8.0-2.1.16 2.2.1-".

    A range without an end reaches the newest release. An empty string means all releases.
    """
    found, start = [], None
    for at, release in enumerate(order):
        if release in present and start is None:
            start = at
        if start is not None and (release not in present):
            found.append((start, at - 1))
            start = None
    if start is not None:
        found.append((start, len(order) - 1))
    if found == [(0, len(order) - 1)]:
        return ""
    words = []
    for low, high in found:
        if high == len(order) - 1:
            words.append(order[low] + "-")
        elif low == high:
            words.append(order[low])
        else:
            words.append(f"{order[low]}-{order[high]}")
    return " ".join(words)


def write(path, head, lines):
    """Writes a generated file."""
    text = "".join(f"# {line}\n" for line in head) + "".join(f"{line}\n" for line in lines)
    pathlib.Path(path).write_text(text)
