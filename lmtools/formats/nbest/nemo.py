"""NeMo's beams, `preds_out_width128_alpha1.0_beta0.5.tsv` of eval_beamsearch_ngram*.py: lines
`text TAB score`, at most as many for each utterance as the beam is wide, best first, in the order
of the manifest.

With `manifest=F` utterances are called as their audio files, without directory and suffix, and have
the manifest's texts as references; else they are numbered from 1. The width is `width=N`, or else
what the file's name says. Where a search left fewer beams, an utterance begins where the score
rises; that is certain only if it rises as often as the manifest says, and anything else is refused.
The score is the search's total: the component `am`. The format is read, not written.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats import checks
from lmtools.formats.nbest.manifest import rows
from lmtools.types import Hypothesis, NBest

SUMMARY = "NeMo's beams: `text TAB score`, width lines an utterance, and a manifest"
OPTIONS = {
    "manifest": "the JSON lines that were decoded: names of utterances, references",
    "width": "most lines an utterance (default: as the file's name says, preds_out_widthN_...)",
}
NAME = re.compile(r"preds_out_width([1-9][0-9]{0,5})_")

write = checks.refuse_write


def recognises(path: Path, first: str) -> bool:
    """Return whether the file is called as NeMo calls it, and its first line ends in a score."""
    _, tab, score = first.rpartition("\t")
    return bool(tab and NAME.match(path.name) and checks.NUMBER.fullmatch(score.strip()))


def read(path, manifest: str | None = None, width: str | None = None) -> Iterator[NBest]:
    """Read the lists of a file; UserError where lines and utterances do not go together."""
    hyps = list(read_rows(path))
    most = width_of(path, width)
    if manifest:
        known = [(row.utt, row.text) for row in rows(manifest)]
        starts = divide_among(hyps, len(known), most)
        if starts is None:
            raise UserError(
                f"{path}: {len(hyps)} lines do not tell where each of {len(known)} utterances of"
                f" {manifest} begins, which have {f'up to {most}' if most else 'unequally many'}"
                " beams; give the manifest that was decoded, or dump the beams with their ids"
                " (format beams)"
            )
    else:
        starts = divide_equally(path, hyps, most)
        known = [(str(number), None) for number in range(1, len(starts) + 1)]
    ends = [*starts[1:], len(hyps)][: len(starts)]
    for (utt, ref), start, end in zip(known, starts, ends, strict=True):
        yield NBest(utt, tuple(hyps[start:end]), ref)


def divide_equally(path, hyps: Sequence[Hypothesis], most: int | None) -> Sequence[int]:
    """Return where each utterance starts, if all have `most` hypotheses, best first; UserError."""
    if most is None:
        raise UserError(f"{path}: its name says no width; give width=N or manifest=F")
    starts = range(0, len(hyps), most)
    mixed = find_mixed(hyps, starts)
    if len(hyps) % most or mixed:
        where = f"{path}:{mixed + 1}" if mixed else str(path)
        cause = f"the score rises within {most} lines" if mixed else f"no multiple of {most} lines"
        raise UserError(
            f"{where}: {cause}, so that some utterance has fewer beams; give the manifest that was"
            " decoded: manifest=F"
        )
    return starts


def divide_among(hyps: Sequence[Hypothesis], count: int, most: int | None) -> Sequence[int] | None:
    """Return where each utterance's hypotheses start, best first; None where uncertain."""
    if most and len(hyps) == most * count:
        return range(0, len(hyps), most)
    rises = [0, *(place for place in range(1, len(hyps)) if is_better(hyps, place))]
    longest = max(end - start for start, end in pairwise([*rises, len(hyps)]))
    if hyps and len(rises) == count and longest <= (most or longest):
        return rises
    if most or not count or len(hyps) % count or not hyps:
        return None
    starts = range(0, len(hyps), len(hyps) // count)
    return None if find_mixed(hyps, starts) else starts


def find_mixed(hyps: Sequence[Hypothesis], starts: Sequence[int]) -> int | None:
    """Return the place of a hypothesis that starts no list and is better than the one before it."""
    first = set(starts)
    places = range(1, len(hyps))
    return next((at for at in places if at not in first and is_better(hyps, at)), None)


def is_better(hyps: Sequence[Hypothesis], place: int) -> bool:
    """Return whether the hypothesis there has a higher score than the one before it."""
    return hyps[place].scores["am"] > hyps[place - 1].scores["am"]


def read_rows(path) -> Iterator[Hypothesis]:
    for number, line in read_lines(path):
        text, tab, score = line.rpartition("\t")
        if not tab:
            raise UserError(f"{path}:{number}: no tab; expected `text TAB score`")
        value = checks.number(score.strip(), f"{path}:{number}", "the score")
        yield Hypothesis(" ".join(text.split()), {"am": value})


def width_of(path, width: str | None) -> int | None:
    """Return the most lines of an utterance, by the option or the file's name; None: neither."""
    if width is not None and not re.fullmatch(r"[1-9][0-9]{0,5}", width):
        raise UserError(f"width={width}: expected a number of lines, from 1")
    match = NAME.match(Path(path).name)
    return int(width or match[1]) if width or match else None
