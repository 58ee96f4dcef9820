"""lmtools learn: from answers that a user corrected, what the other verbs read; and an honest test
of it.
"""

from dataclasses import replace
from pathlib import Path

from lmtools.base.atomic import atomic_directory, atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import say_lines
from lmtools.formats import read, write
from lmtools.formats.confusions import write_confusions
from lmtools.learning.confusions import estimate, pair_lists
from lmtools.learning.halves import (
    LM,
    check_enough,
    judge_halves,
    list_parts,
    propose_phrases,
    teach,
)
from lmtools.types import Hypothesis, NBest

MARKER = "confusions.tsv"

EXAMPLES = (
    "lmtools learn --corrections kept.jsonl --out learnt",
    "lmtools learn --corrections corrections.tsv --out learnt",
)


def arguments(parser):
    parser.epilog = (
        "The answers stand in the order of time. What the earlier half teaches is tested on the"
        " later half, and the errors before and after are printed. DIR has confusions.tsv, lists"
        f" with further hypotheses and the score `{LM}` of a language model of what was said"
        " (lists.jsonl, for `lmtools tune` and `lmtools train`), said.txt, what was said, and"
        " phrases.txt, words that a glossary may want: look at them first. Nothing applies by"
        " itself."
    )
    help_text = (
        "N-best lists whose references are what the user kept, or F.tsv of lines recognised, tab,"
        " corrected"
    )
    inputs = parser.groups["input"]
    inputs.add_argument("--corrections", required=True, metavar="F", help=help_text)
    parser.add("--format")
    parser.add("--out", metavar="DIR", help="directory to write")


def read_corrections(path, form: str | None) -> list[NBest]:
    """Read lists with references, or pairs in a .tsv; UserError with the line of what is none."""
    if not str(path).endswith(".tsv"):
        return list(read(path, form))
    lists = []
    for number, line in read_lines(path):
        heard, tab, said = line.partition("\t")
        if not tab or "\t" in said:
            raise UserError(
                f"{path}:{number}: not two columns; give what was recognised, a tab, what is right"
            )
        lists.append(NBest(f"line-{number}", (Hypothesis(heard),), said))
    return lists


def run(args):
    """Read, test in the order of time, learn from all, write."""
    nbests = read_corrections(args.corrections, args.format)
    check_enough(nbests, args.corrections)
    pairs = pair_lists(nbests, args.corrections)
    say_lines(judge_halves(nbests, args.corrections).describe())
    confusions = estimate(pairs)
    taught = [
        nbest_with(nbest, values)
        for begin, end in list_parts(len(nbests))
        for nbest, values in teach(
            [*nbests[:begin], *nbests[end:]], nbests[begin:end], args.corrections
        )
    ]
    phrases = propose_phrases(nbests, confusions)
    with atomic_directory(args.out, MARKER) as home:
        home = Path(home)
        write_confusions(confusions, home / MARKER)
        write(taught, str(home / "lists.jsonl"), "jsonl")
        for name, lines in (("phrases.txt", phrases), ("said.txt", [one.ref for one in nbests])):
            with atomic_text(home / name) as out:
                out.writelines(f"{line}\n" for line in lines)
    say_lines([f"{args.out}: {len(confusions)} confusions, {len(phrases)} phrases proposed"])


def nbest_with(nbest: NBest, values: list[float]) -> NBest:
    """Return a list with the column LM among the scores of its hypotheses."""
    pairs = zip(nbest.hyps, values, strict=True)
    hyps = (hyp.with_scores({**hyp.scores, LM: value}) for hyp, value in pairs)
    return replace(nbest, hyps=tuple(hyps))
