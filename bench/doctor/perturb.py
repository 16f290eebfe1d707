#!/usr/bin/env python3
"""Scores the doctor's answers to cases with fewer facts, or with the output of other tools.

    perturb.py [--program DIAGNOSE] [--seed N] [--kind KIND] [--misses] [--floors] CASES ...

CASES are files of labelled cases (JSONL) and folders of folders called CAUSE[+CAUSE]--how, like
crates/doctor/tests/unseen. DIAGNOSE is the crate's example of that name. The files of each case
are changed into these variants:

    without ...      one file is missing: of a tool, of the machine, or the sentences
    only a tool      one tool's output is left, with the machine and the sentences
    first rows       every tool's table has only its head and three rows
    half the rows    every row of a tool stays or goes, by the seed
    no weights       folded stacks have no count
    as folded        flat rows of perf as folded stacks, without modules
    as ps            the rows of top as ps prints them
    as words         the rows of top, or the first functions of perf, as a sentence
    no words         there is no sentence
    a sentence less  one sentence is missing
    no versions      the releases are not known

The rest may not be enough: then "not enough evidence" is right, and the count of those only shows
where to look. A wrong name is always wrong, so 95% of the names must be right. If the unchanged case
has the right answer, a variant has "kept" or "lost" it. --floors shows the precision and the number
of answers above each confidence. The same seed makes the same variants. Files called check.jsonl are
never read. Python's standard library is enough.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE / "cases"))
import render  # noqa: E402
import score  # noqa: E402

# Files with sentences of people, and files that identify the machine.
WORDS = {"report.txt", "post.txt"}
MACHINE = {"version.txt", "os-release", "lscpu.txt", "notes.txt", "uname.txt", "meminfo", "cmdline"}
ROWS = 3
FLOORS = (0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.80, 0.90)

PERF_ROW = re.compile(r"^\s*(\d+[.,]\d+)%\s+(?:\d+[.,]\d+%\s+)?(?:(\S+)\s+)?\[?(\S+?)\]?\s+\[([k.])\]\s+(\S+)")
TOP_ROW = re.compile(
    r"^\s*(\d+)\s+(\S+)\s+(\S+)\s+(-?\d+)\s+(\S+)\s+(\S+)\s+(\S+)\s+([RSDZTI])\s+(\d+[.,]\d+)\s+(\d+[.,]\d+)\s+(\S+)\s+(.+)$")


def is_folded(name, text):
    """Whether a file holds folded stacks."""
    rows = text.strip().splitlines()
    return name.endswith(".folded") or bool(rows) and all(re.match(r"^\S.*;.* \d+$", row) for row in rows)


def thin(text, keep):
    """A table of which keep(number of the row) stays; a head has few figures and stays."""
    out, rows = [], 0
    for line in text.splitlines():
        is_row = len(re.findall(r"(?<![\w.])\d[\w.,%]*", line)) >= 2 or re.search(r"; ?\S.* \d+$", line)
        if is_row:
            rows += 1
        if not is_row or keep(rows):
            out.append(line)
    return "\n".join(out) + "\n"


def no_weights(name, text):
    """Stacks without a count; nothing if the file has none."""
    if is_folded(name, text):
        return re.sub(r" \d+$", " 1", text, flags=re.M)
    return None


def perf_rows(text):
    """Rows of a perf table: percent, command, module, mode and function."""
    return [m.groups() for m in map(PERF_ROW.match, text.splitlines()) if m]


def as_folded(text):
    """The flat rows of a perf table as stacks of one function, a thousand samples in all."""
    rows = perf_rows(text)
    out = [";".join(filter(None, (command, symbol + ("_[k]" if mode == "k" else ""))))
           + f" {round(10 * float(percent.replace(',', '.')))}" for percent, command, _module, mode, symbol in rows]
    return "\n".join(out) + "\n" if out else None


def top_rows(text):
    """Rows of top: PID, user, state, %CPU, %MEM, time and command."""
    found = filter(None, map(TOP_ROW.match, text.splitlines()))
    return [(m[1], m[2], m[8], float(m[9].replace(",", ".")), m[10], m[11], m[12].strip()) for m in found]


def as_ps(text):
    """The rows of top as `ps aux` has them; the head of top is gone."""
    rows = top_rows(text)
    if not rows:
        return None
    out = ["USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND"]
    for pid, user, state, cpu, memory, time, command in rows:
        out.append(f"{user:<8} {pid:>7} {cpu:>4.1f} {memory:>4} {0:>6} {0:>5} ?        {state:<4} 10:00 {time:>6} [{command}]")
    return "\n".join(out) + "\n"


def as_words(text):
    """Busy rows of top, or the first functions of perf, as a person describes them."""
    rows = [(cpu, command) for _, _, _, cpu, _, _, command in top_rows(text) if cpu >= 5][:ROWS]
    if rows:
        return "".join(f"{command} is at {cpu:.0f}% of a CPU.\n" for cpu, command in rows)
    rows = perf_rows(text)[:ROWS]
    if rows:
        return "perf shows that most of the CPU goes to " + ", ".join(row[4] + "()" for row in rows) + ".\n"
    return None


def variants(files, seed):
    """All variants of a case: pairs of the change and the files."""
    chance = random.Random(seed)
    tools = sorted(name for name in files if name not in WORDS | MACHINE)
    if len(files) > 1:
        for name in sorted(files):
            yield "without " + ("words" if name in WORDS else "machine" if name in MACHINE else "a tool"), \
                name, {n: t for n, t in files.items() if n != name}
    if len(tools) > 1:
        for name in tools:
            yield "only a tool", name, {n: t for n, t in files.items() if n not in tools or n == name}
    if tools:
        yield "first rows", "", {n: thin(t, lambda row: row <= ROWS) if n in tools else t for n, t in files.items()}
        kept = {}
        for name in sorted(files):
            keep = collections.defaultdict(lambda: chance.random() < 0.5)
            kept[name] = thin(files[name], lambda row: keep[row]) if name in tools else files[name]
        yield "half the rows", "", kept
        for name in tools:
            for kind, made in (("no weights", no_weights(name, files[name])), ("as folded", as_folded(files[name])),
                               ("as ps", as_ps(files[name])), ("as words", as_words(files[name]))):
                if made is None:
                    continue
                rest = {n: t for n, t in files.items() if n != name}
                target = {"no weights": name, "as folded": "stacks.folded", "as ps": "ps.txt"}.get(kind, "report.txt")
                yield kind, name, {**rest, target: rest.get(target, "") + made}
        if any(name in files for name in WORDS):
            yield "no words", "", {n: t for n, t in files.items() if n not in WORDS}
    if "version.txt" in files:
        yield "no versions", "", {n: t for n, t in files.items() if n != "version.txt"}
    sentences = files.get("report.txt", "").splitlines()
    if len(sentences) > 1:
        for at in range(len(sentences)):
            left = "\n".join(sentences[:at] + sentences[at + 1:]) + "\n"
            yield "a sentence less", sentences[at], {**files, "report.txt": left}


def read(paths):
    """Cases as (name, truth, files), of all paths."""
    for path in paths:
        if path.name == "check.jsonl":
            sys.exit("perturb.py: check.jsonl is to check with, not to learn from")
        if path.is_dir():
            for folder in sorted(path.iterdir()):
                causes = folder.name.split("--")[0].split("+")
                if causes != ["none"]:
                    truth = {"class": causes[0], "accept": causes[1:], "family": score.FAMILY.get(causes[0], ""),
                             "zfs_role": "cause"}
                    yield folder.name, truth, {file.name: file.read_text() for file in sorted(folder.iterdir())}
            continue
        for line in path.read_text().splitlines():
            case = json.loads(line)
            if case["use"] == "diagnose":
                yield case["id"], case["truth"], render.render(case)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--program", type=pathlib.Path, default=ROOT / "target/release/examples/diagnose")
    add("--seed", type=int, default=1)
    add("--kind", help="only variants of this kind")
    add("--misses", action="store_true", help="name what is wrong, and what was right and is lost")
    add("--floors", action="store_true", help="how right the answers above each confidence are")
    add("cases", nargs="+", type=pathlib.Path)
    return parser.parse_args()


def main():
    asked = options()
    mapping = json.loads((HERE / "classes.json").read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = []

        def save(kind, what, case, truth, files):
            place = folder / "in" / f"{len(made):05}"
            place.mkdir(parents=True)
            for file, text in files.items():
                (place / file).write_text(text)
            made.append((kind, what, case, truth, place))

        for case, truth, files in read(asked.cases):
            save("as it stands", "", case, truth, files)
            # The name is in the seed, so that another case does not change this one.
            for kind, what, changed in variants(files, f"{asked.seed} {case}"):
                if asked.kind in (None, kind):
                    save(kind, what, case, truth, changed)
        places = [str(place) for *_, place in made]
        subprocess.run([str(asked.program), str(folder / "out"), *places], check=True)
        table = collections.defaultdict(collections.Counter)
        stands, sure, lines = {}, [], []
        for kind, what, case, truth, place in made:
            answer = json.loads((folder / "out" / (place.name + ".json")).read_text())
            ranked = score.ranking(answer, mapping)
            result = score.judge(truth, ranked)
            if kind == "as it stands":
                stands[case] = result
            named = result["named"]
            confidence = answer["findings"][0]["confidence"] if named else 0.0
            outcome = "right" if result["accepted"] else "wrong" if named else "open"
            if named:
                sure.append((confidence, result["accepted"]))
            lost = stands[case]["accepted"] and not result["accepted"]
            for row in [kind] + (["all variants"] if kind != "as it stands" else []):
                table[row].update({"n": 1, outcome: 1, "named": named, "named right": result["named_right"],
                                   "lost": lost, "accused": result["false_accusation"]})
            if outcome == "wrong" or lost and stands[case]["named"]:
                lines.append(f"{outcome:<6} {kind:<16} {case:<36} {what[:60]:<30} want {truth['class']} "
                             f"got {score.show(ranked)} {confidence:.2f}")
        print(f"{'variant':<18} {'n':>5} {'right':>6} {'open':>6} {'wrong':>6} {'lost':>6} {'accused':>8} {'right of the named':>20}")
        for row in sorted(table, key=lambda r: (r == "all variants", r != "as it stands", r)):
            t = table[row]
            print(f"{row:<18} {t['n']:>5} {t['right']:>6} {t['open']:>6} {t['wrong']:>6} {t['lost']:>6} {t['accused']:>8} "
                  f"{t['named right']:>8} of {t['named']:>4} {100 * t['named right'] / max(t['named'], 1):>5.1f}%")
        if asked.floors:
            for floor in FLOORS:
                above = [right for confidence, right in sure if confidence >= floor]
                print(f"from {floor:.2f}: {sum(above):>5} of {len(above):>5} right {100 * sum(above) / max(len(above), 1):>5.1f}%")
        if asked.misses:
            print(*lines, sep="\n")


if __name__ == "__main__":
    main()
