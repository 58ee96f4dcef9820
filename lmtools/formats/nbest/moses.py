"""N-best lists of Moses and Marian: `0 ||| blue finch . ||| LM0= -41.3 TM0= -6.7 -1.2 ||| -14.6`.

Old files of Moses have `0||| ` and `lm: -41.3 -40.4`; further fields, as alignments, follow its
total. Scores are as the decoder writes them: natural logarithms where they are logarithms, not yet
multiplied by their weights, while the total is. cdec and Joshua write the same fields. The segments
of a text traced with -t or -tt, `the red |0-1| fox |2-2|`, are no words: the text is `the red fox`.

Marian has an alignment and `WordScores= ...` before the features, older versions among these. F0,
F1 .. are the models' log-probabilities (natural), the total their weighted sum, length-normalised
if --normalize was given; it is read as it stands.

A feature of one value keeps its name, the values of a longer one are named with an index: LM0,
TM0_0 and TM0_1; old `lm: -41.3 -40.4` is lm0 and lm1. They are written each under its name. The
total is the score `am`, or `total` beside a feature of the name `am`. All lines have the same
features, but for Moses' sparse ones: 0 in lines without them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats import checks
from lmtools.formats.checks import (
    NUMBER,
    Utterances,
    component,
    components,
    number,
    spell_in_unit,
    write_lines,
)
from lmtools.formats.registry import Format
from lmtools.types import EMPTY, TOTAL, Hypothesis, NBest

BAR = "|||"
COUNTED = re.compile(r"0|[1-9][0-9]{0,14}")  # a sentence number that has only one spelling
LONGEST_GAP = 10_000
OPTIONS = {
    "bpe": (
        "subword marks in the texts: subword_nmt (`@@ `), sentencepiece (`▁`) or none (the default:"
        " the texts are words)"
    ),
    "gaps": (
        "sentence numbers that are left out, as of failed sentences: empty lists (the default), or"
        " skip"
    ),
}

# F0, F1 .. are what Marian calls its models
SEGMENT = r"\|\d+-\d+(?:,[^|]*)?\|"  # the source words of a phrase; with -tt its scores, too
SEGMENTS = re.compile(rf"(?:^|\s+){SEGMENT}(?!\S)", re.ASCII)
SEGMENTED = re.compile(rf"(?:.*\s)?{SEGMENT}", re.ASCII)  # each phrase ends in one, so the last
MOSES_FEATURES = re.compile(r"(?!(F\d+|WordScores)=)[^\s=]+(:|=) ?[-+.\d]", re.ASCII)
MARIAN_FEATURES = re.compile(r"(F\d+|WordScores)= ?[-+.\d]", re.ASCII)
WORDS = "WordScores="
WORDS_INSIDE = re.compile(r"(?<!\S)WordScores=((?:\s*[-+.\d][-+.\deE]*)*)(?!\S)", re.ASCII)


@dataclass(frozen=True)
class Row:
    """A line's fields: sentence, text, features, total verbatim ('' for none), the rest by name."""

    utt: str
    text: str
    features: str = ""
    total: str = ""
    extra: Mapping[str, str] = field(default_factory=lambda: EMPTY)


def read(
    path,
    bpe: str = "none",
    gaps: str = "empty",
    *,
    arrange: Callable[[list[str], str], Row],
    sparse: bool = False,
) -> Iterator[NBest]:
    """Read the lists in `path`, one by one; `arrange` makes a Row of a line's fields; with `sparse`
    a feature may be absent (0) in some lines. UserError with the line of anything malformed.
    """
    checks.check_marks(bpe, "bpe")
    if gaps not in ("empty", "skip"):
        raise UserError(f"gaps={gaps}: no such way; known are empty, skip")
    utterances = Utterances()
    filled: set[str] = set()
    names, last = None, None
    lines = read_rows(path, arrange, bpe)
    for utt, group in groupby(fill_absent(lines, path) if sparse else lines, lambda row: row[1]):
        rows_of_id = list(group)
        where = f"{path}:{rows_of_id[0][0]}"
        utterances.add(utt, where)
        if utt in filled:
            raise UserError(
                f"{where}: sentence {utt} follows {last}; sort the lists by number, or read with"
                " the option gaps=skip"
            )
        for between in list_missing(last, utt, where) if gaps == "empty" else ():
            filled.add(between)
            yield NBest(between, ())
        nbest = NBest(utt, tuple(hyp for _, _, hyp in rows_of_id))
        names, last = components(nbest, names, where), utt
        yield nbest


def recognise(features: re.Pattern, place: int) -> Callable[[Path, str], bool]:
    """Return `recognises` of a first line with `features` at `place`, a number after it."""

    def recognises(path: Path, first: str) -> bool:
        fields = [part.strip() for part in first.split(BAR)]
        if len(fields) < 4 or not NUMBER.fullmatch(fields[place + 1]):
            return False
        return bool(features.match(fields[place])) or (len(fields) == 4 and not fields[2])

    return recognises


def read_rows(
    path, arrange: Callable[[list[str], str], Row], bpe: str
) -> Iterator[tuple[int, str, Hypothesis]]:
    """Yield (line number, sentence, hypothesis) of every line that is not empty."""
    for count, line in read_lines(path):
        if line.strip():
            where = f"{path}:{count}"
            fields = [part.strip() for part in line.split(BAR)]
            if len(fields) < 2:
                raise UserError(
                    f"{where}: no `{BAR}` in the line; expected `sentence {BAR} text {BAR} features"
                    f" {BAR} total`"
                )
            row = arrange(fields, where)
            yield count, row.utt, build_hypothesis(row, bpe, where)


def build_hypothesis(row: Row, bpe: str, where: str) -> Hypothesis:
    scores = parse_features(row.features, where)
    if row.total:
        name = TOTAL if "am" in scores else "am"
        if name in scores:
            raise UserError(f"{where}: a feature is called {name!r} besides the total; rename it")
        scores[name] = number(row.total, where, "the total")
    return Hypothesis(checks.join_pieces(row.text, bpe), scores, row.extra)


def list_missing(last: str | None, utt: str, where: str) -> Iterable[str]:
    """Return the sentence numbers between two that follow each other in a file."""
    if last is None or not (COUNTED.fullmatch(last) and COUNTED.fullmatch(utt)):
        return ()
    if int(utt) - int(last) > LONGEST_GAP:
        raise UserError(
            f"{where}: sentence {utt} follows {last}; number them without such gaps, or read with"
            " the option gaps=skip"
        )
    return map(str, range(int(last) + 1, int(utt)))


def write(nbests: Iterable[NBest], path, *, fields: Callable[[Row], list[str]]) -> None:
    """Write lists; scores of any name become features, `total`, or else `am`, the total. `fields`
    puts a Row's in order. An empty list has no line, which reading fills
    in between numbered ones.
    """

    def spell_list(nbest: NBest, where: str) -> Iterator[str]:
        if not nbest.hyps and not COUNTED.fullmatch(nbest.utt):
            raise UserError(
                f"{where}: has no hypothesis, and only numbered sentences may lack them here; drop"
                " it"
            )
        for hyp in nbest.hyps:
            parts = fields(row_of(nbest.utt, hyp))
            yield f" {BAR} ".join(check_plain(part, where) for part in parts)

    write_lines(nbests, path, spell_list)


def row_of(utt: str, hyp: Hypothesis) -> Row:
    """Return the fields that hold `hyp`."""
    total = hyp.scores.get(total_name(hyp.scores))
    values = [item for item in hyp.scores.items() if item[0] != total_name(hyp.scores)]
    features = " ".join(f"{name}= {spell_in_unit(value)}" for name, value in values)
    spelled = "" if total is None else spell_in_unit(total)
    text = " ".join(hyp.text.split())
    return Row(utt, text, features, total=spelled, extra=hyp.extra)


def check_plain(text: str, where: str) -> str:
    """Return `text` on one line, if it can stand between bars."""
    if BAR in text:
        raise UserError(f"{where}: {text!a} holds `{BAR}`, which ends a field; write | as &#124;")
    return " ".join(text.split())


MOST_SPARSE = 200  # features; no search finds the weights of more


def parse_features(text: str, where: str) -> dict[str, float]:
    groups: list[tuple[str, str, list[float]]] = []
    for token in text.split():
        name, sign, value = (
            token.rpartition("=")
            if "=" in token
            else (token[:-1], ":", "")
            if token.endswith(":")
            else ("", "", token)
        )
        if sign:
            groups.append((component(name, where), sign, []))
        elif not groups:
            raise UserError(
                f"{where}: feature value {token!r} has no name before it; expected `NAME= value"
                " ...`"
            )
        if value:
            groups[-1][2].append(number(value, where, f"feature {groups[-1][0]!r}"))
    scores: dict[str, float] = {}
    for name, sign, values in groups:
        if not values:
            raise UserError(
                f"{where}: feature {name!r} has no value; write one after it or drop the name"
            )
        for key, value in zip(name_values(name, sign, len(values)), values, strict=True):
            if key in scores:
                raise UserError(
                    f"{where}: two feature values would be called {key!r}; rename the feature"
                    f" {name!r}"
                )
            scores[key] = value
    return scores


def name_values(name: str, sign: str, count: int) -> list[str]:
    """Name a feature's values; an old-style name without digit takes the index (lm0)."""
    if count == 1:
        return [name]
    joint = "" if sign == ":" and not name[-1].isdigit() else "_"
    return [f"{name}{joint}{index}" for index in range(count)]


def total_name(scores: Mapping[str, float]) -> str:
    return TOTAL if TOTAL in scores else "am"


def fill_absent(
    lines: Iterable[tuple[int, str, Hypothesis]], path
) -> Iterator[tuple[int, str, Hypothesis]]:
    """Give each hypothesis the sparse features of all others, with the value 0."""
    lines = list(lines)
    totals = {"am", TOTAL}
    common = set.intersection(*({*hyp.scores} for _, _, hyp in lines)) if lines else set()
    known = dict.fromkeys(name for _, _, hyp in lines for name in hyp.scores)
    sparse = [name for name in known if name not in common | totals]
    if not common - totals:
        sparse = []
    if len(sparse) > MOST_SPARSE:
        raise UserError(
            f"{path}: {len(sparse)} sparse features, more than {MOST_SPARSE}, whose weights nothing"
            " finds; keep few of them, or the total alone"
        )
    zeros = dict.fromkeys(sparse, 0.0)
    for line, utt, hyp in lines:
        yield line, utt, hyp.with_scores({**hyp.scores, **zeros, **hyp.scores}) if sparse else hyp


def parse_moses(fields: list[str], where: str) -> Row:
    """Parse the row of a line's fields; what follows the total is the extra `alignment`."""
    utt, text, *scores = fields[:4]
    rest = fields[4:]
    extra = {"alignment": f" {BAR} ".join(rest)} if any(rest) else {}
    if SEGMENTED.fullmatch(text):
        text = SEGMENTS.sub("", text).strip()
    return Row(utt, text, *scores, extra=extra)


def list_moses(row: Row) -> list[str]:
    alignment = row.extra.get("alignment", "")
    return [
        *(row.utt, row.text, row.features, row.total),
        *(alignment.split(BAR) if alignment else ()),
    ]


def parse_marian(fields: list[str], where: str) -> Row:
    """Parse the row of a line's fields, of which the last two are features and total."""
    extra = {}
    for part in fields[2:-2]:
        name, value = (
            ("WordScores", part.removeprefix(WORDS).strip())
            if part.startswith(WORDS)
            else ("alignment", part)
        )
        if name in extra:
            raise UserError(
                f"{where}: two of {len(fields)} fields are {name}; expected text, alignment,"
                " WordScores, features, total"
            )
        extra[name] = value
    features, total = fields[-2:] if len(fields) > 3 else (*fields[2:], "", "")[:2]
    if WORDS in features and "WordScores" not in extra:
        extra["WordScores"] = " ".join(" ".join(WORDS_INSIDE.findall(features)).split())
        features = " ".join(WORDS_INSIDE.sub(" ", features).split())
    extra = {name: value for name, value in extra.items() if value}
    return Row(*fields[:2], features=features, total=total, extra=extra)


def list_marian(row: Row) -> list[str]:
    alignment, words = row.extra.get("alignment"), row.extra.get("WordScores")
    between = [*([alignment] if alignment else []), *([f"{WORDS} {words}"] if words else [])]
    return [row.utt, row.text, *between, row.features, row.total]


MOSES = Format(
    "Moses: `id ||| text ||| LM0= -41.3 TM0= -6.7 -1.2 ||| total`",
    recognise(MOSES_FEATURES, 2),
    partial(read, arrange=parse_moses, sparse=True),
    partial(write, fields=list_moses),
    options=OPTIONS,
)
MARIAN = Format(
    "Marian: `id ||| text ||| F0= -2.1 ||| total`, alignments and word scores between",
    recognise(MARIAN_FEATURES, -2),
    partial(read, arrange=parse_marian),
    partial(write, fields=list_marian),
    options=OPTIONS,
)
