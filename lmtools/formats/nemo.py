"""NeMo's beams, `preds_out_width128_alpha1.0_beta0.5.tsv` of eval_beamsearch_ngram*.py: lines
`text TAB score`, the same number for each utterance, best first, in the order of the manifest.

With `manifest=F` utterances are called as their audio files, without directory and suffix, and have
the manifest's texts as references; else they are numbered from 1. How many lines an utterance has
`width=N` says, or else the file's name, or the manifest's number of utterances. The score is the
search's total: the component `am`. The format is read, not written.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.formats import checks, json_io
from lmtools.formats.jsonl import parse
from lmtools.types import Hypothesis, NBest

ABOUT = "NeMo's beams: `text TAB score`, width lines an utterance, and a manifest"
OPTIONS = {
    "manifest": "the JSON lines that were decoded: names of utterances, references",
    "width": "lines an utterance (default: as the file's name says, preds_out_widthN_...)",
}
NAME = re.compile(r"preds_out_width([1-9][0-9]{0,5})_")

write = checks.refuse_write


def recognises(path: Path, first: str) -> bool:
    """Whether the file is called as NeMo calls it, and its first line ends in a score."""
    _, tab, score = first.rpartition("\t")
    return bool(tab and NAME.match(path.name) and checks.NUMBER.fullmatch(score.strip()))


def read(path, manifest: str | None = None, width: str | None = None) -> Iterator[NBest]:
    """The lists of a file; UserError where lines and utterances do not go together."""
    found = list(rows(path))
    known = list(read_manifest(manifest)) if manifest else None
    lines = width_of(path, width, len(found), known)
    if known is None:
        known = [(str(number), None) for number in range(1, len(found) // lines + 1)]
    if len(found) != lines * len(known):
        told = f" of {manifest}" if manifest else ""
        raise UserError(
            f"{path}: {len(found)} lines, not {lines} for each of {len(known)} utterances{told};"
            " give the manifest that was decoded, or width=N"
        )
    for number, (utt, ref) in enumerate(known):
        yield NBest(utt, tuple(found[number * lines : (number + 1) * lines]), ref)


def rows(path) -> Iterator[Hypothesis]:
    """The hypothesis of every line."""
    for number, line in read_lines(path):
        text, tab, score = line.rpartition("\t")
        if not tab:
            raise UserError(f"{path}:{number}: no tab; expected `text TAB score`")
        value = checks.number(score.strip(), f"{path}:{number}", "the score")
        yield Hypothesis(" ".join(text.split()), {"am": value})


def width_of(path, width: str | None, lines: int, known: list | None) -> int:
    """How many lines an utterance has."""
    if width is not None:
        if not re.fullmatch(r"[1-9][0-9]{0,5}", width):
            raise UserError(f"width={width}: expected a number of lines, from 1")
        return int(width)
    if match := NAME.match(Path(path).name):
        return int(match[1])
    if known:
        return max(1, lines // len(known))
    raise UserError(f"{path}: its name says no width; give width=N or manifest=F")


def read_manifest(path) -> Iterator[tuple[str, str | None]]:
    """The name of each utterance, and its text where it has one."""
    seen: set[str] = set()
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        tree = json_io.expect(parse(line, where), dict, where, "the line")
        audio = json_io.member(tree, "audio_filepath", str, where)
        utt = checks.identifier(Path(audio).stem, where)
        if utt in seen and "offset" in tree:
            utt = f"{utt}-{tree['offset']}"
        checks.first_time(utt, seen, where)
        seen.add(utt)
        yield utt, json_io.optional(tree, "text", str, where)
