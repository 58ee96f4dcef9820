"""ESPnet2 decode directories `[logdir/output.J/]{n}best_recog/{text,score,scores,token,token_int}`,
one directory a rank, one file a field.

`score` is the printed total of the first pass (decoder, CTC and LM parts already weighted and
added), a number or `tensor(-7.41)` with or without `device=` or `grad_fn=`, perhaps in quotes as
json.dump leaves it; it becomes the component `am`.
`scores`, if it is there, has the parts, `{'decoder': tensor(-4.1), 'ctc': -2.0}` or `decoder=-4.1
ctc=-2.0`, which become components of these names. A rank directory may lack utterances; a too-short
utterance has the text " ", no parts, and becomes an empty hypothesis whose scores are 0. `token`
and `token_int`, the recogniser's own units, are kept as extras.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from lmtools.base.atomic import new_directory
from lmtools.base.errors import UserError
from lmtools.formats import kaldi_text
from lmtools.formats.checks import (
    check_nbests,
    component,
    components,
    name_unread,
    number,
    one_score,
)
from lmtools.formats.registry import list_children, list_numbered
from lmtools.types import TOTAL, Hypothesis, NBest

SUMMARY = "ESPnet2 decode directory with {n}best_recog/text, score and perhaps scores"
RANK = re.compile(r"([1-9][0-9]*)best_recog")
JOB = re.compile(r"output\.([0-9]+)")
UNITS = ("token", "token_int")
TENSOR = re.compile(r"tensor\(\[?(.*?)\]?(,.*)?\)")
NAME = re.compile(r"""[^\W\d][^\s'":=,(){}]*""")
VALUE = r"""["']?tensor\((?:[^()]|\([^)]*\))*\)["']?|[^\s,:=()]+"""
PART = re.compile(rf"""['"]?({NAME.pattern})['"]?(?: ?[:=] ?| )({VALUE})(?:,? ?|$)""")


def recognises(path: Path, first: str) -> bool:
    """Return whether `path` is a directory with rank directories in it or in its jobs."""
    return path.is_dir() and any(True for _ in find_ranks(path))


def read(path) -> list[NBest]:
    """Read the lists of a decode directory (or logdir, or output.J), in the jobs' order."""
    lists: dict[str, dict[int, Hypothesis]] = {}
    present, unread = None, set()
    for folder, rank in find_ranks(Path(path)):
        names = {child.name for child in list_children(folder)}
        scored = [name for name in PARSERS if name in names]
        if present not in (None, scored):
            raise UserError(
                f"{folder}: some rank directories have a file"
                f" `{min({*present} ^ {*scored})}` and some do not; decode again or remove them all"
            )
        present = scored
        unread |= {name for name in names - {*PARSERS} if "score" in name}
        for utt, hyp in read_hypotheses(folder, scored):
            if rank in lists.setdefault(utt, {}):
                raise UserError(
                    f"{folder}/text: utterance {utt!r} occurs in two jobs; keep one of them"
                )
            lists[utt][rank] = hyp
    if present is None:
        raise UserError(
            f"{path}: no directory like 1best_recog in it or in its output.J; give an ESPnet2"
            " decode directory"
        )
    name_unread(path, unread, "lines `utt NAME=number NAME=number` in a file `scores` are read")
    nbests = [
        NBest(utt, tuple(ranks[rank] for rank in sorted(ranks))) for utt, ranks in lists.items()
    ]
    return list(add_missing(nbests, path)) if "scores" in present else nbests


def add_missing(nbests: Iterable[NBest], path) -> Iterator[NBest]:
    """Yield lists, empty hypotheses with scores of 0; UserError where others lack some."""
    nbests = list(nbests)
    zeros = {name: 0.0 for nbest in nbests for hyp in nbest.hyps for name in hyp.scores}
    names = frozenset(zeros) or None
    for nbest in nbests:
        hyps = (hyp if hyp.text else hyp.with_scores({**zeros, **hyp.scores}) for hyp in nbest.hyps)
        filled = replace(nbest, hyps=tuple(hyps))
        components(filled, names, f"{path}: utterance {nbest.utt!r}")
        yield filled


def find_ranks(path: Path) -> Iterator[tuple[Path, int]]:
    """Yield (rank directory, rank) in `path`, or else in its jobs, one by one."""
    if ranks := numbered_directories(path, RANK):
        yield from ranks
        return
    for job, _ in numbered_directories(path, JOB) or numbered_directories(path / "logdir", JOB):
        yield from numbered_directories(job, RANK)


def numbered_directories(path: Path, name: re.Pattern) -> list[tuple[Path, int]]:
    """List (subdirectory, number) of `path`, of names that match as a whole, by number."""
    inside = list_numbered(path, name) if path.is_dir() else []
    return [(child, number) for number, child in inside if child.is_dir()]


def read_hypotheses(folder: Path, scored: Iterable[str]) -> Iterator[tuple[str, Hypothesis]]:
    """Yield (utterance, hypothesis) of one rank directory, files `scored` joined by id."""
    texts = kaldi_text.read(folder / "text")
    scores: dict[str, dict[str, float]] = {utt: {} for utt in texts}
    for name in scored:
        rows = {
            utt: PARSERS[name](text, f"{folder}/{name}:{line}")
            for line, utt, text in kaldi_text.rows(folder / name, text=False)
        }
        if alone := texts.keys() ^ rows.keys():
            raise UserError(
                f"{folder}: utterance {min(alone)!r} is only in one of `text` and `{name}`; decode"
                " it again or drop it from both"
            )
        for utt, row in rows.items():
            scores[utt] |= row
    units = {name: kaldi_text.read(folder / name) for name in UNITS if (folder / name).exists()}
    for utt, text in texts.items():
        extra = {name: column[utt] for name, column in units.items() if utt in column}
        yield utt, Hypothesis(text, scores[utt], extra)


def parse_score(text: str, where: str, what: str = "score") -> float:
    """Return the number in `text`, bare or as `tensor(...)`, with or without quotes."""
    bare = text[1:-1] if text[:1] in ('"', "'") and text[-1:] == text[:1] else text
    match = TENSOR.fullmatch(bare)
    return number(match[1].strip() if match else bare, where, what)


def parse_parts(text: str, where: str) -> dict[str, float]:
    """Return the numbers in `text` by the names before them."""
    body, at = text.strip().removeprefix("{").removesuffix("}").strip(), 0
    parts: dict[str, float] = {}
    while at < len(body):
        match = PART.match(body, at)
        if not match or match[1] in (*parts, "am", TOTAL):
            raise UserError(
                f"{where}: {body[at : at + 40]!r} is no score with a name of its own; write `utt"
                " decoder=-4.1 ctc=-2.0`, or take the file `scores` away"
            )
        parts[component(match[1], where)] = parse_score(match[2], where, match[1])
        at = match.end()
    return parts


PARSERS = {"score": lambda text, where: {"am": parse_score(text, where)}, "scores": parse_parts}


def write(nbests: Iterable[NBest], path) -> None:
    """Write a decode directory, one directory a rank, at once: the total, or `am`, as `score`;
    without a total others as `scores`. UserError for other names, and for a directory of other
    files.
    """
    nbests = list(check_nbests(nbests, path))
    with replace_directory(Path(path)) as temporary:
        ranks: dict[int, dict[str, Hypothesis]] = {}
        for nbest in nbests:
            for rank, hyp in enumerate(nbest.hyps, 1):
                ranks.setdefault(rank, {})[nbest.utt] = hyp
        for rank, hyps in ranks.items():
            write_rank(hyps, temporary / f"{rank}best_recog", path)


def write_rank(hyps: Mapping[str, Hypothesis], folder: Path, path) -> None:
    """Write the files of one rank directory from its hypotheses; `path` is what messages name."""
    kaldi_text.write({utt: hyp.text for utt, hyp in hyps.items()}, folder / "text")
    names = {name for hyp in hyps.values() for name in hyp.scores}
    parts = names - {"am"} if TOTAL not in names and all(map(NAME.fullmatch, names)) else set()
    totals, rows = {}, {}
    for utt, hyp in hyps.items():
        total = hyp.with_scores({k: v for k, v in hyp.scores.items() if k not in parts})
        if (score := one_score(total, f"{path}: utterance {utt!r}")) is not None:
            totals[utt] = f"tensor({float(score)!r})"
        rows[utt] = " ".join(f"{name}={float(hyp.scores[name])!r}" for name in sorted(parts))
    if totals:
        kaldi_text.write(totals, folder / "score")
    if parts:
        kaldi_text.write(rows, folder / "scores")
    for name in UNITS:
        if column := {utt: hyp.extra[name] for utt, hyp in hyps.items() if name in hyp.extra}:
            kaldi_text.write(column, folder / name)


@contextlib.contextmanager
def replace_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory beside `path` that takes its place when the block ends well."""
    if path.exists() and (
        not path.is_dir() or any(not RANK.fullmatch(child.name) for child in path.iterdir())
    ):
        raise UserError(f"{path}: holds other files than rank directories; choose another name")
    with new_directory(path) as new:
        yield new
