"""Checks of every reader and writer: ids that cannot be keys, scores that are no numbers, text that
UTF-8 cannot hold. And what other programs' output has to be freed of: units of logarithms, and
subword marks, subword-nmt's `blue fin@@ ch`, SentencePiece's `▁blue ▁fin ch`.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.grammar import encodable
from lmtools.base.log import say
from lmtools.types import TOTAL, Hypothesis, NBest

# float() alone would also take '1_000', 'infinity' and digits of other scripts.
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def identifier(utt: str, where: str) -> str:
    """Return `utt` if it can be a key of Kaldi text; UserError otherwise."""
    if wide := [c for c in utt if c.isspace() and not c.isascii()]:
        code = "".join(f"\\x{byte:02x}" for byte in wide[0].encode())
        remedy = f"write a space for it: sed 's/{code}/ /' F > NEW"
        cause = f"utterance id {utt[:40]!a} holds white space, U+{ord(wide[0]):04X}"
        raise UserError(f"{where}: {cause}; {remedy}")
    if not utt or any(c.isspace() for c in utt) or utt.startswith("\ufeff"):
        raise UserError(
            f"{where}: utterance id {utt!a} is empty or holds white space or a byte-order mark;"
            " rename it"
        )
    return encodable(utt, where)


def file_name(name: str, where: str, what: str = "utterance id") -> str:
    """Return `name` if it can name a file in a directory of lists; UserError otherwise."""
    if (
        re.search(r"[/\x00-\x1f\x7f-\x9f]", name)
        or name.startswith(".")
        or len(name.encode()) > 200
    ):
        raise UserError(f"{where}: {what} {name[:80]!a} cannot name a file; rename it")
    return identifier(name, where)


def number(text: str, where: str, what: str) -> float:
    """Parse a finite decimal number; UserError for all else, as NaN and inf."""
    value = float(text) if NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise UserError(f"{where}: {what} is {text!r}; expected a finite number")
    return value


def first_time(
    utt: str, seen: Collection[str], where: str, remedy: str = "keep one of them"
) -> None:
    """Raise UserError if utterance `utt` occurred before."""
    if utt in seen:
        raise UserError(f"{where}: utterance {utt!r} occurs a second time; {remedy}")


class Utterances(set[str]):
    """The ids of the utterances of one file, each of which may come once."""

    def add(self, utt: str, where: str, remedy: str = "keep one of them") -> str:
        """Return `utt`, which is remembered; UserError if it cannot be a key or came before."""
        first_time(identifier(utt, where), self, where, remedy)
        super().add(utt)
        return utt


def by_utterance(rows: Iterable[tuple]) -> Iterator[tuple[str, list[tuple]]]:
    """Yield rows (where, utterance, ...) by utterance; UserError for one that comes back."""
    utterances = Utterances()
    for utt, group in groupby(rows, key=lambda row: row[1]):
        lines = list(group)
        yield utterances.add(utt, lines[0][0]), lines


def components(nbest: NBest, names: frozenset | None, where: str) -> frozenset | None:
    """Return the names of a list's scores; UserError where they differ, also from `names`."""
    for rank, hyp in enumerate(nbest.hyps, 1):
        if hyp.scores.keys() != names:
            present = frozenset(
                component(name, f"{where}: hypothesis {rank}") for name in hyp.scores
            )
            if names is not None:
                raise UserError(
                    f"{where}: hypothesis {rank} has scores {list_names(present)}, earlier ones"
                    f" {list_names(names)}; give all the same"
                )
            names = present
    return names


def check_nbests(nbests: Iterable[NBest], path) -> Iterator[NBest]:
    """Yield `nbests` on their way into `path`; UserError for what a reader would refuse."""
    utterances, names = Utterances(), None
    for nbest in nbests:
        where = f"{path}: utterance {nbest.utt!r}"
        utterances.add(nbest.utt, where)
        names = components(nbest, names, where)
        encodable(
            "".join((nbest.ref or "", *nbest.more_refs, *nbest.extra, *nbest.extra.values())), where
        )
        for rank, hyp in enumerate(nbest.hyps, 1):
            encodable(
                "".join((hyp.text, hyp.written or "", *hyp.extra, *hyp.extra.values())), where
            )
            for name, value in hyp.scores.items():
                component(name, where)
                if not math.isfinite(value):
                    raise UserError(
                        f"{where}: score {name!r} of hypothesis {rank} is {value}; expected a"
                        " finite number"
                    )
        yield nbest


def write_lines(
    nbests: Iterable[NBest], path, spell: Callable[[NBest, str], Iterable[str]]
) -> None:
    """Write the lines that `spell` makes of each list and of the place that messages name, at once
    where `path` is standard output; UserError, and nothing written, for what a reader would refuse.
    """
    with atomic_text(path) as out:
        for nbest in check_nbests(nbests, path):
            lines = spell(nbest, f"{path}: utterance {nbest.utt!r}")
            out.writelines(f"{line}\n" for line in lines)
            if str(path) == "-":
                out.flush()


def name_unread(path, names: Iterable[str], remedy: str) -> None:
    """Say which files of scores stand beside lists and are not read, if there are any."""
    if names := sorted(names):
        shown = ", ".join(names[:5]) + (" .." if len(names) > 5 else "")
        say(f"{path}: scores beside the lists are not read: {shown}; {remedy}")


def component(name: str, where: str) -> str:
    """Return `name` if it can name a feature of the tuned weights."""
    if name.split() != [name] or "=" in name:
        raise UserError(
            f"{where}: score name {name!r} is empty or holds white space or '='; rename it"
        )
    return encodable(name, where)


def list_names(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "(none)"


def one_score(hyp: Hypothesis, where: str) -> float | None:
    """Return the one score of `hyp`: `total`, else `am`, None without; UserError for others."""
    if TOTAL not in hyp.scores and hyp.scores.keys() - {"am"}:
        names = list_names(hyp.scores)
        raise UserError(
            f"{where}: has the scores {names}, and this format holds one; `lmtools rescore` first,"
            " or keep the lists as jsonl"
        )
    return hyp.scores.get(TOTAL, hyp.scores.get("am"))


def only_hypothesis(nbest: NBest, path) -> Hypothesis | None:
    """Return the only hypothesis of a list, None of an empty one; UserError for more."""
    if len(nbest.hyps) > 1:
        raise UserError(
            f"{path}: holds one hypothesis an utterance, and {nbest.utt!r} has more; cut the"
            " lists with --depth 1"
        )
    return nbest.hyps[0] if nbest.hyps else None


def no_score(hyp: Hypothesis, where: str) -> None:
    """Raise UserError if a format without scores would lose those of `hyp`, unless rescored."""
    if hyp.scores and TOTAL not in hyp.scores:
        names = list_names(hyp.scores)
        raise UserError(
            f"{where}: has the scores {names}, and this format holds none; `lmtools rescore` first,"
            " or keep the lists as jsonl"
        )


def refuse_write(nbests: Iterable[NBest], path) -> None:
    """Raise UserError: the `write` of a format that only its own program writes."""
    raise UserError(f"{path}: this format is read, not written; write jsonl")


MARKS = ("subword_nmt", "sentencepiece", "none")
END = "</s>"  # the end of the sentence, which Marian's --no-spm-decode writes as its last piece


def check_marks(name: str, spec: str) -> str:
    """Return `name` if it is one of MARKS; UserError about the option `spec` otherwise."""
    if name not in MARKS:
        raise UserError(f"{spec}={name}: no such subword marks; known are {', '.join(MARKS)}")
    return name


def guess_marks(texts: Iterable[str]) -> str:
    """Guess the marks of `texts`: `@@` at the end of any word, or ▁ at the head of each text."""
    texts = [text for text in texts if text.strip()]
    if any(word.endswith("@@") for text in texts for word in text.split()):
        return "subword_nmt"
    if texts and all(text.lstrip().startswith("▁") for text in texts):
        return "sentencepiece"
    return "none"


def join_pieces(text: str, marks: str) -> str:
    """Return the words of `text`, its pieces joined as `marks` says, without END as the last."""
    pieces = text.split()
    if marks != "none" and pieces[-1:] == [END]:
        pieces.pop()
    words = " ".join(pieces)
    if marks == "subword_nmt":
        return f"{words} ".replace("@@ ", "").rstrip()
    if marks == "sentencepiece" and "▁" in words:
        return " ".join(words.replace(" ", "").replace("▁", " ").split())
    return words


# One of each in natural logarithms; a bytelog is a logarithm to base 1.0001 divided by 1024, for
# which SRILM takes 1/ln 1.0001 as 10000.5.
BASE2 = math.log(2)
BASE10 = math.log(10)
BYTELOG = 1024 / 10000.5


def parse_in_unit(text: str, unit: float, where: str, what: str) -> float:
    """Parse `text`, a number in `unit`, as a natural logarithm; UserError unless it is finite."""
    value = number(text, where, what) * unit
    if not math.isfinite(value):
        raise UserError(
            f"{where}: {what} is {text!r}, too large to convert; find out what wrote it"
        )
    return value


def spell_in_unit(value: float, unit: float = 1.0) -> str:
    """Spell `value` in units of `unit` as the shortest decimal that is exact, if one is."""
    quotient = value / unit
    for digits in range(15, 18):
        text = f"{quotient:.{digits}g}"
        if float(text) * unit == value:
            break
    return text
