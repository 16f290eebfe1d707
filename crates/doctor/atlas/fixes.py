"""Finds the first releases, one a branch, that contain each commit cited by a rule.

A release contains a commit in three cases:
- Its history has the commit.
- Its history has a commit with the same subject, since a backport is another commit.
- Its history has a commit whose message mentions it (`cherry picked from commit X`, or `X - subject`
  in a squash).
"""

import re
import subprocess
import tomllib

import history

# A hash in a rule: ten digits, one of them a letter, so that no number matches.
CITED = re.compile(r"\b(?=[0-9]*[a-f])[0-9a-f]{10}\b")
ASKED = re.compile(r"zfs_before\(\"([0-9a-f]{10})\"\)")
TAKEN = re.compile(r"(?:cherry picked from commit |^\s*)([0-9a-f]{7,40})(?=\)| - )", re.M)


def cited(rules):
    """Returns the commits that rules cite as fixes, or in their remedies."""
    found = set()
    for path in sorted(rules.glob("*.toml")):
        text = path.read_text()
        rule = tomllib.loads(text)
        found.update(rule.get("fix", []))
        found.update(ASKED.findall(text))
        for lines in rule.get("remedy", {}).values():
            for line in lines:
                found.update(CITED.findall(line))
    return found


def subject(repository, commit):
    """Returns the first line of a commit's message; "" if the repository lacks the commit."""
    asked = subprocess.run(["git", "-C", str(repository), "log", "-1", "--format=%s", commit, "--"],
                           capture_output=True, text=True, errors="replace")
    return asked.stdout.strip() if asked.returncode == 0 else ""


def containing(repository, released, commits):
    """Returns commit -> releases of one repository that contain it."""
    subjects = {commit: subject(repository, commit) for commit in commits}
    subjects = {commit: text for commit, text in subjects.items() if text}
    log = history.git(repository, "log", "--format=%H%x1f%B%x1e", *(tag for _, tag in released))
    same = {commit: set() for commit in subjects}
    for entry in log.split("\x1e"):
        number, _, message = entry.strip().partition("\x1f")
        first = message.split("\n", 1)[0].strip()
        taken = TAKEN.findall(message)
        for commit, text in subjects.items():
            if (number.startswith(commit) or first == text
                    or any(commit.startswith(name[:10]) or name.startswith(commit) for name in taken)):
                same[commit].add(number)
    found = {commit: set() for commit in subjects}
    for version, tag in released:
        has = set(history.git(repository, "rev-list", tag).split())
        for commit, numbers in same.items():
            if numbers & has:
                found[commit].add(version)
    return found


def firsts(releases, order):
    """Returns the first release of each branch, up to the first branch that always had the commit."""
    branch = lambda version: history.number(version)[:2]
    found = []
    for name in sorted({branch(version) for version in order}):
        own = [version for version in order if branch(version) == name]
        having = [version for version in own if version in releases]
        if not having:
            continue
        if set(own[own.index(having[0]):]) - releases:
            raise ValueError(f"{having[0]} has a fix that a later release of its branch lacks")
        found.append((having[0], having[0] == own[0]))
    # All later branches have the commit from their beginning as well.
    while len(found) > 1 and found[-1][1] and found[-2][1]:
        found.pop()
    return [version for version, _ in found]


def lines(repositories, rules, order):
    """Returns a line a commit: the hash as cited, and its first releases, if any."""
    commits, out = cited(rules), []
    found = {}
    for repository, released in repositories:
        for commit, releases in containing(repository, released, commits).items():
            found.setdefault(commit, set()).update(releases)
    unknown = sorted(commits - found.keys())
    if unknown:
        raise ValueError(f"no repository has the commits {', '.join(unknown)}")
    for commit in sorted(found):
        out.append(" ".join([commit, *firsts(found[commit], order)]))
    return out
