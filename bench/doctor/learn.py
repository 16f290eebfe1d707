#!/usr/bin/env python3
"""Counts the weight of each sign of the doctor's rules over labelled cases, and shows the scores.

    learn.py [--program DIAGNOSE] [--write] [--weights FILE] [--misses] [--words] [--blind]
             CASES.jsonl ...

DIAGNOSE is the crate's example of that name (cargo build --release -p ogive-doctor --example
diagnose). For every case it lists the signs that hold, those shown not to hold, and the unknown
ones. A weight is a ratio of likelihoods: the frequency of the sign with its cause, divided by its
frequency without; see weight(). The program itself ranks the answers, with the given weights.

Prints the score with the weights of the rules' files, with weights counted over all cases, and with
weights counted over all other cases. Files called check.jsonl are never
read. Python's standard library is enough.
"""
import argparse
import json
import math
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

# The weight in the rule's file counts like this many cases of the cause, and of other causes.
PRIOR_OWN, PRIOR_OTHER = 20.0, 200.0
# A sign that is only evidence for its cause is assumed to hold without it in one case of fifty,
# until this many cases are counted.
RARE, PRIOR_RARE = 0.02, 50.0
# The most that is added to the file's weight, if at least two cases of the cause support the sign.
RISE = 0.0
# No single sign weighs more.
MOST = 6.0
# A sign never changes sides: the rest of a weight that the cases contradict.
LEAST = 0.05
# A sign of words weighs no more than its precision: the part of the cases in which it holds that
# have its cause. The prior is a precision of four in five, which counts like this many cases. A hint
# needs a precision of seven in ten: then it weighs ENOUGH to be possible.
WORDS_RIGHT, PRIOR_WORDS, HINT_RIGHT, ENOUGH = 0.8, 4.0, 0.7, 2.8
DOCUMENT = HERE / "weights.md"
BEGIN, END = "<!-- written by bench/doctor/learn.py -->", "<!-- written until here -->"


def believed(weight, otherwise):
    """The frequency of a sign with the cause and without it, from its two written weights."""
    high, low = math.exp(weight), math.exp(otherwise)
    other = min(0.98, max(0.001, (1 - low) / (high - low)))
    return min(0.98, max(0.001, other * high)), other


def weight(sign, own, other, model):
    """The weights of one sign; own and other are pairs: cases with the sign, and without it."""
    written, missed = sign["weight"], sign["otherwise"]
    if sign["kind"] == "words" and written > 0:
        right = (own[0] + WORDS_RIGHT * PRIOR_WORDS) / (own[0] + other[0] + PRIOR_WORDS)
        most = ENOUGH + math.log(right / (1 - right)) - math.log(HINT_RIGHT / (1 - HINT_RIGHT))
        return max(LEAST, min(written, most)), missed
    if not written:
        # Evidence only against the cause stays: few cases of the cause could show it.
        return written, missed
    if written * missed < 0:
        p, q = believed(written, missed)
        q = (other[0] + model.prior_other * q) / (sum(other) + model.prior_other)
    else:
        # It is evidence only if it holds; its frequency without the cause was counted.
        q = (other[0] + RARE * PRIOR_RARE) / (sum(other) + PRIOR_RARE)
        p = min(0.95, q * math.exp(written))
    p = (own[0] + model.prior_own * p) / (sum(own) + model.prior_own)
    held, not_held = math.log(p / q), math.log((1 - p) / (1 - q))

    def side(value, of, support):
        if of == 0:
            return 0.0
        most = min(MOST, abs(of) + (model.rise if support > 1 else 0.0))
        return math.copysign(max(LEAST, min(most, math.copysign(value, value * of))), of)
    return side(held, written, own[0]), side(not_held, missed, sum(own))


def without_exceptions(when):
    """The condition of a sign of words without its exceptions, which known cases suggested."""
    when = re.sub(r' & ![^"]*(?="\))', "", when)
    return re.sub(r' && !said\(r?"[^"]*"\)', "", when)


class Counts:
    """The frequency of each sign with its cause and without it; cases can be removed again."""

    def __init__(self, rules, mapping, model):
        self.rules, self.mapping, self.model = rules, mapping, model
        self.table = {(rule, key): [0, 0, 0, 0] for rule in rules for key in rules[rule]}

    def add(self, case, seen, step=1):
        """Counts a case, or removes it with step -1. A cause that is also right counts neither way,
        except for words, where it counts as right.
        """
        truth = case["truth"]
        for rule, signs in seen.items():
            known_as = self.mapping.get(rule, rule)
            if known_as is None:
                continue
            also = known_as in truth["accept"]
            at = 0 if also or known_as == truth["class"] else 2
            for key, holds in signs.items():
                if not also or self.rules[rule][key]["kind"] == "words":
                    self.table[rule, key][at + (not holds)] += step

    def of(self, rule, key):
        """The weights of one sign."""
        held, missed, other_held, other_missed = self.table[rule, key]
        return weight(self.rules[rule][key], (held, missed), (other_held, other_missed), self.model)

    def lines(self):
        """The weights, one line a sign: rule, key, if it holds, if it is shown not to hold."""
        return ["{} {} {:.2f} {:.2f}".format(rule, key, *self.of(rule, key)) for rule, key in self.table]


class Doctor:
    """The program, and the cases as files that a user would have saved."""

    def __init__(self, program, folder, cases):
        self.program, self.folder, self.cases = program, folder, cases
        for case in cases:
            place = folder / "cases" / case["id"]
            place.mkdir(parents=True)
            for name, text in render.render(case).items():
                (place / name).write_text(text)
        self.run("--signs", folder / "signs", cases)
        self.rules = self.load(folder / "signs" / "rules.json")
        self.seen = {c["id"]: self.load(folder / "signs" / (c["id"] + ".json")) for c in cases}
        self.count_words_without_exceptions()

    def count_words_without_exceptions(self):
        """Evaluates signs of words in rules without their exceptions."""
        rules, out = self.folder / "rules", self.folder / "plain"
        rules.mkdir()
        for path in (ROOT / "crates/doctor/rules").glob("*.toml"):
            lines = path.read_text().splitlines()
            lines = [without_exceptions(x) if x.startswith("when = ") else x for x in lines]
            (rules / path.name).write_text("\n".join(lines) + "\n")
        self.run("--signs", "--rules", rules, out, self.cases)
        plain = {(rule, sign["when"]): key for rule, signs in self.load(out / "rules.json").items()
                 for key, sign in signs.items()}
        names = {(rule, key): plain.get((rule, without_exceptions(sign["when"])))
                 for rule, signs in self.rules.items() for key, sign in signs.items()
                 if sign["kind"] == "words"}
        for case in self.cases:
            seen, held = self.seen[case["id"]], self.load(out / (case["id"] + ".json"))
            for (rule, key), name in names.items():
                if key in seen.get(rule, {}) and name in held.get(rule, {}):
                    seen[rule][key] = held[rule][name]

    @staticmethod
    def load(path):
        return json.loads(path.read_text())

    def run(self, *arguments):
        """Runs the program; the last argument is the cases."""
        places = [str(self.folder / "cases" / case["id"]) for case in arguments[-1]]
        subprocess.run([str(self.program), *map(str, arguments[:-1]), *places], check=True)

    def answers(self, cases, weights=None):
        """The doctor's answer to each case: with weights(case), or with those of the rules' files."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = pathlib.Path(name)
            options = []
            if weights:
                (folder / "weights").mkdir()
                for case in cases:
                    text = "\n".join(weights(case)) + "\n"
                    (folder / "weights" / (case["id"] + ".txt")).write_text(text)
                options = ["--weights", folder / "weights"]
            self.run(*options, folder / "out", cases)
            return {c["id"]: self.load(folder / "out" / (c["id"] + ".json")) for c in cases}


def judge(cases, said, mapping):
    """Right, named, named rightly, accusations, and the misses."""
    total = {"n": 0, "right": 0, "named": 0, "named_right": 0, "false": 0, "misses": []}
    for case in cases:
        ranked = score.ranking(said[case["id"]], mapping)
        result = score.judge(case["truth"], ranked)
        total["n"] += 1
        total["right"] += result["accepted"]
        total["named"] += result["named"]
        total["named_right"] += result["named_right"]
        total["false"] += result["false_accusation"]
        if not result["accepted"]:
            total["misses"].append((case["id"], case["truth"]["class"], score.show(ranked)))
    return total


def hinted(cases, said, mapping):
    """Hints for texts without a tool's output, and the number of wrong ones."""
    hints, wrong = 0, []
    for case in cases:
        findings = [f["id"] for f in said[case["id"]]["findings"] if mapping.get(f["id"], f["id"])]
        if findings:
            hints += 1
            first = mapping.get(findings[0], findings[0])
            if first not in {case["truth"]["class"], *case["truth"]["accept"]}:
                wrong.append((case["id"], findings[0]))
    return hints, wrong


def own_rules(case, rules, mapping):
    """The rules that are right for a case."""
    right = {case["truth"]["class"], *case["truth"]["accept"]}
    return {rule for rule in rules if mapping.get(rule, rule) in right}


def without_own(case, rules, mapping, kinds):
    """Weights as written, but nothing for the signs of these kinds in the rules that are right."""
    own = own_rules(case, rules, mapping)
    for rule, signs in rules.items():
        for key, sign in signs.items():
            out = rule in own and (kinds is None or sign["kind"] in kinds)
            held, missed = (0.0, 0.0) if out else (sign["weight"], sign["otherwise"])
            yield f"{rule} {key} {held:.2f} {missed:.2f}"


PROOF, SETTINGS = {"symbol", "lock", "counter", "log"}, {"config", "host", "version"}


def support(finding):
    """The kind of evidence of a finding, in a word or two."""
    held = [line for line in finding["evidence"] if line["weight"] > 0]
    kinds = {line["kind"] for line in held}
    if kinds & PROOF:
        return "proof"
    words = [line for line in held if line["kind"] == "words"]
    places = {(s["input"], s["line"]) for line in words for s in line["sources"]}
    parts = (["threads"] if "thread" in kinds else []) + (["settings"] if kinds & SETTINGS else [])
    if words:
        parts.append(f"{'several' if len(words) > 1 else 'one'} of words in "
                     f"{'several sentences' if len(places) > 1 else 'one sentence'}")
    return " and ".join(parts) or "nothing"


def by_support(cases, said, mapping):
    """The precision of the names, by their kind of evidence."""
    table = {}
    for case in cases:
        answer = said[case["id"]]
        result = score.judge(case["truth"], score.ranking(answer, mapping))
        if result["named"]:
            row = table.setdefault(support(answer["findings"][0]), [0, 0])
            row[not result["accepted"]] += 1
    return [f"      right {right:>3} wrong {wrong:>3}  {name}" for name, (right, wrong) in sorted(table.items())]


def blind(doctor, cases, mapping, misses):
    """The answers to cases whose words, or whose rules, are removed."""
    cases = [case for case in cases if case["truth"]["class"] != "unknown"]
    for label, kinds in (("own words taken out", {"words"}), ("own rule taken out", None)):
        said = doctor.answers(cases, lambda case: without_own(case, doctor.rules, mapping, kinds))
        total, accused, open_ = judge(cases, said, mapping), 0, 0
        wrong = []
        for case in cases:
            ranked = score.ranking(said[case["id"]], mapping)
            result = score.judge(case["truth"], ranked)
            if result["named"] and not result["accepted"]:
                wrong.append((case["id"], case["truth"]["class"], score.show(ranked)))
            open_ += not result["named"]
            accused += result["false_accusation"]
        print(f"{label:<24} {total['n']:>3} cases: right {total['named_right']:>3}, open {open_:>3}, "
              f"wrong {len(wrong):>3}, accused wrongly {accused}")
        print(*by_support(cases, said, mapping), sep="\n")
        for miss in wrong if misses else []:
            print("     ", *miss)


def show(label, total):
    n, named = total["n"], total["named"]
    return (f"{label:<24} {total['right']:>3} of {n:>3} right {100 * total['right'] / max(n, 1):>5.1f}%  "
            f"of the named {total['named_right']:>3} of {named:>3} "
            f"{100 * total['named_right'] / max(named, 1):>5.1f}%  accused wrongly {total['false']}")


def table(counts):
    """The signs that at least two cases of the cause support, for people."""
    out = ["| rule | sign | with the cause | with others | written | counted |",
           "|---|---|--:|--:|--:|--:|"]
    for (rule, key), (held, missed, other_held, other_missed) in sorted(counts.table.items()):
        sign = counts.rules[rule][key]
        if held < 2:
            continue
        out.append(f"| `{rule}` | `{condition(sign)}` | {held} of {held + missed} "
                   f"| {other_held} of {other_held + other_missed} "
                   f"| {sign['weight']:.1f} | {counts.of(rule, key)[0]:.1f} |")
    return out


def words_of_one(counts):
    """The signs of kind words that match one case of their cause, and no other case."""
    for (rule, key), (held, _, other_held, _) in sorted(counts.table.items()):
        sign = counts.rules[rule][key]
        if sign["kind"] == "words" and held == 1 and other_held == 0:
            yield f"| `{rule}` | `{condition(sign)}` | {sign['weight']:.1f} |"


def condition(sign):
    """The condition of a sign for a cell of a table."""
    when = " ".join(sign["when"].split())
    when = when if len(when) <= 60 else when[:57] + "..."
    return when.replace("|", "\\|").replace("`", "'")


def write(report, counts):
    """The scores and tables in the document."""
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    block = ["", "```text", *report, "```", "",
             "Signs that at least two cases of the cause support:", "", *table(counts), "",
             "Signs of kind `words` that match one case, their own, and no other:", "",
             "| rule | sign | written |", "|---|---|--:|", *words_of_one(counts), ""]
    DOCUMENT.write_text(before + BEGIN + "\n".join(block) + END + after)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--program", type=pathlib.Path, default=ROOT / "target/release/examples/diagnose")
    add("--write", action="store_true", help="write the scores and tables in weights.md")
    add("--weights", type=pathlib.Path, metavar="FILE", help="write the counted weights, one line a sign")
    add("--misses", action="store_true", help="name the cases that are missed")
    add("--words", action="store_true", help="list signs of kind words that match one case of their own only")
    add("--blind", action="store_true", help="take each cause's words, and its rule, out for its own cases")
    add("--halves", type=int, metavar="SEED", help="count over a random half and score the other")
    add("--prior", dest="prior", type=float, nargs=2, metavar=("OWN", "OTHER"),
        default=[PRIOR_OWN, PRIOR_OTHER], help="what a rule's file counts, in cases (%(default)s)")
    add("--rise", type=float, default=RISE, help="what counting may add to the file's weight (%(default)s)")
    add("cases", nargs="+", type=pathlib.Path)
    asked = parser.parse_args()
    asked.prior_own, asked.prior_other = asked.prior
    return asked


def read(paths):
    """The cases of all files, and by file."""
    of_file = {}
    for path in paths:
        if path.name == "check.jsonl":
            sys.exit("learn.py: check.jsonl is to check with, not to learn from")
        of_file[path.stem] = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [case for own in of_file.values() for case in own], of_file


def main():
    asked = options()
    mapping = json.loads((HERE / "classes.json").read_text())
    cases, of_file = read(asked.cases)
    with tempfile.TemporaryDirectory() as folder:
        doctor = Doctor(asked.program, pathlib.Path(folder), cases)

        def counted(over):
            counts = Counts(doctor.rules, mapping, asked)
            for case in over:
                counts.add(case, doctor.seen[case["id"]])
            return counts

        def without(case):
            counts.add(case, doctor.seen[case["id"]], -1)
            lines = counts.lines()
            counts.add(case, doctor.seen[case["id"]])
            return lines

        def to_diagnose(own):
            return [case for case in own if case["use"] == "diagnose"]

        counts = counted(cases)
        every = counts.lines()
        said = {"as written": doctor.answers(to_diagnose(cases)),
                "counted over all": doctor.answers(to_diagnose(cases), lambda case: every),
                "each left out": doctor.answers(to_diagnose(cases), without)}
        report = []
        for name, own in [*of_file.items(), ("all", cases)]:
            for label, answers in said.items() if to_diagnose(own) else ():
                total = judge(to_diagnose(own), answers, mapping)
                report.append(show(f"{name}, {label}", total))
                print(report[-1])
                for miss in total["misses"] if asked.misses and name != "all" else []:
                    print("     ", *miss)
        texts = [case for case in cases if case["id"].startswith("outside-")]
        for label, weights in (("as written", None), ("each left out", without)) if texts else ():
            hints, wrong = hinted(texts, doctor.answers(texts, weights), mapping)
            report.append(f"{'outside, ' + label:<24} {len(texts):>3} texts: a hint for {hints}, wrong {len(wrong)}")
            print(report[-1])
            for miss in wrong if asked.misses else []:
                print("     ", *miss)
        if asked.halves is not None:
            mixed = sorted(cases, key=lambda c: c["id"])
            random.Random(asked.halves).shuffle(mixed)
            for label, own, others in (("first", mixed[::2], mixed[1::2]), ("second", mixed[1::2], mixed[::2])):
                lines, own = counted(others).lines(), to_diagnose(own)
                answers = doctor.answers(own, lambda case: lines)
                print(show(f"{label} half, counted over the other", judge(own, answers, mapping)))
        if asked.blind:
            blind(doctor, to_diagnose(cases), mapping, asked.misses)
        if asked.words:
            print(*words_of_one(counts), sep="\n")
        if asked.weights:
            asked.weights.write_text("\n".join(every) + "\n")
        if asked.write:
            write(report, counts)


if __name__ == "__main__":
    main()
