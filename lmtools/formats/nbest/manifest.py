"""Manifests: the text of each recording of a data set, as NeMo, Lhotse, Common Voice and others
keep it.

JSON objects, one a line or in a list, or a table (TSV, CSV with `,`, `;` or `|`) whose first line
names its columns. An utterance is called by the first of IDS, or of PATHS without directory and
suffix. Where a row has what was recognised (`pred_text`) or a reference (`ref`), too, it is a
hypothesis with its reference; with a score, one of several of an utterance, in the file's order.
Utterances of Lhotse's cuts are their supervisions; of a JSON list of texts they are 1, 2 .. The
format is read, not written.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import NamedTuple

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats import checks
from lmtools.formats.json_lists import json_io
from lmtools.formats.registry import read_beginning
from lmtools.types import EMPTY, SPEAKER, Hypothesis, NBest

SUMMARY = "manifests (NeMo, Lhotse), JSON lists of texts, CSV or TSV with a column of texts"
IDS = ("utt", "utt_id", "utterance_id", "id", "key")
NEMO = "audio_filepath"
PATHS = (NEMO, "wav_filename", "audio_path", "file_name", "path", "file", "wav", "audio")
TEXTS = ("text", "sentence", "transcript", "transcription", "wrd")
HYPS = ("pred_text", "hyp", "hypothesis", "prediction")
REFS = ("ref", "reference")
TIMED = ("timestamps_word", "words", "word_timestamps")  # words with times
SPEAKERS = ("speaker", "speaker_id", "spk", "client_id")
SCORES = ("score", "am", "am_score", "log_prob", "logprob")
INSIDE = ("supervisions", "tracks", "cut")  # of Lhotse's cuts
BARE = re.compile(r"[^\s,;]+[,;][^\t]*[,;]\s*-?\d+([.,]\d+)?")  # a row, no names of columns

write = checks.refuse_write


class ManifestRow(NamedTuple):
    """A row: the utterance, its text, what was recognised (None: none), its score, the place."""

    utt: str
    text: str | None
    hyp: str | None
    scores: Mapping[str, float]
    where: str
    extra: Mapping[str, str] = EMPTY


def recognises(path: Path, first: str) -> bool:
    """Return whether the first object, or the first line's columns, name utterances and texts."""
    names: Iterable = split_row(first)
    if first.lstrip().startswith(("{", "[")):
        head = read_beginning(path).decode("utf-8-sig", "replace").lstrip("[ \t\r\n")
        try:
            tree, _ = json.JSONDecoder().raw_decode(head)
        except (ValueError, RecursionError):
            return False
        if not isinstance(tree, dict):
            return isinstance(tree, str) and first.lstrip().startswith("[")
        if next(find_supervisions(tree), None):
            return True
        rich = NEMO not in tree and any(
            (isinstance(value, (dict, list)) and name not in ("alignment", "custom"))  # Lhotse's
            or "_score" in name
            or "confidence" in name
            for name, value in tree.items()
        )
        kinds = (str, type(None))
        names = [name for name, value in tree.items() if isinstance(value, kinds) and not rich]
    named = bool(choose(names, IDS + PATHS) and choose(names, TEXTS + HYPS))
    return named or BARE.fullmatch(first) is not None


def find_supervisions(tree: Mapping) -> Iterator[Mapping]:
    """Yield the supervisions of a cut of Lhotse's, also of one made of others."""
    for name in INSIDE:
        inside = tree.get(name)
        for part in inside if isinstance(inside, list) else [inside]:
            if isinstance(part, dict):
                yield from [part] if "text" in part else find_supervisions(part)


def read(path) -> Iterator[NBest]:
    """Read the text of each utterance, or hypotheses, perhaps with scores and a reference."""
    lists: dict[str, tuple[list[Hypothesis], str | None]] = {}
    speakers: dict[str, dict[str, str]] = {}
    for row in rows(path):
        text, ref = (row.text, None) if row.hyp is None else (row.hyp, row.text)
        if text is None:
            raise UserError(f"{row.where}: no text of {row.utt!r}; write it, or drop the line")
        hyps, said = lists.setdefault(row.utt, ([], ref))
        if said != ref:
            raise UserError(f"{row.where}: another reference of {row.utt!r} before; correct one")
        extra = dict(row.extra)
        speakers[row.utt] = {SPEAKER: extra.pop(SPEAKER)} if SPEAKER in extra else {}
        hyps.append(Hypothesis(" ".join(text.split()), row.scores, extra))
    yield from (NBest(utt, tuple(hyps), ref, speakers[utt]) for utt, (hyps, ref) in lists.items())


def rows(path) -> Iterator[ManifestRow]:
    """Yield the rows of a file; UserError for one without name, or a repeated one without score."""
    utterances, trees, offsets = checks.Utterances(), list(read_trees(path)), {}
    names = [name_row(*pair) for pair in trees]
    for utt, (tree, _) in zip(names, trees, strict=True):
        offsets.setdefault(utt, set()).add(str(tree.get("offset")))
    for utt, (tree, where) in zip(names, trees, strict=True):
        if len(offsets[utt]) > 1 and "offset" in tree:  # parts of a recording, in any order
            utt = f"{utt}-{tree['offset']}"
        text, hyp, ref = (
            json_io.optional(tree, choose(tree, keys) or "", str, where)
            for keys in (TEXTS, HYPS, REFS)
        )
        if ref is not None:
            text, hyp = ref, text if hyp is None else hyp
        score = choose(tree, SCORES)
        scores = {"am": parse_score(tree[score], where, score)} if score else EMPTY
        if not (scores and utt in utterances):
            utterances.add(utt, where)
        speaker = json_io.optional(tree, choose(tree, SPEAKERS) or "", str, where)
        extra = {SPEAKER: speaker} if speaker else {}
        if words := find_words(tree):
            extra["words"] = json_io.as_text(words)
        yield ManifestRow(utt, text, hyp, scores, where=where, extra=extra)


def find_words(tree: Mapping) -> list | None:
    """Return the words with times of a row: NeMo's, or of a supervision of Lhotse's."""
    aligned = tree.get("alignment")
    rows = aligned.get("word") if isinstance(aligned, dict) else None
    if isinstance(rows, list) and all(isinstance(row, list) for row in rows):
        return [dict(zip(("word", "start", "duration"), row, strict=False)) for row in rows]
    return next((tree[key] for key in TIMED if isinstance(tree.get(key), list)), None)


def name_row(tree: Mapping, where: str) -> str:
    """Return what a row calls its utterance or its recording."""
    name = choose(tree, IDS + PATHS) or PATHS[0]
    utt = json_io.member(tree, name, str, where)
    return PurePath(utt).stem if name.lower() in PATHS else utt


def parse_score(value, where: str, name: str) -> float:
    """Return the number of a cell, with a decimal comma too, or of JSON."""
    if isinstance(value, str):
        return checks.number(value.strip().replace(",", "."), where, name)
    return json_io.expect(value, float, where, name)


def read_trees(path) -> Iterator[tuple[Mapping, str]]:
    """Yield the values of each row by column, and its place."""
    lines = read_lines(path)
    number, first = next(((n, line) for n, line in lines if line.strip()), (1, ""))
    if first.lstrip().startswith(("{", "[")):
        objects = json_io.read_objects if first.lstrip().startswith("{") else read_array
        for tree, where in objects(path):
            yield from ((part, where) for part in list(find_supervisions(tree)) or [tree])
        return
    names, mark = split_row(first), find_separator(first)
    if not choose(names, TEXTS + HYPS):
        raise UserError(f"{path}:{number}: no names of columns; let line 1 be utt,text,score")
    for number, line in lines:
        values, where = split_row(line, mark), f"{path}:{number}"
        if line and len(values) != len(names):
            raise UserError(f"{where}: {len(values)} columns, not {len(names)}; correct the line")
        if line:
            yield dict(zip(names, values, strict=True)), where


def read_array(path) -> Iterator[tuple[dict, str]]:
    """Yield the objects of a JSON list, each with its place; a text becomes one with its number."""
    items = json_io.expect(json_io.load(path), list, str(path), "the file")
    texts = bool(items) and isinstance(items[0], str)
    for number, item in enumerate(items, 1):
        where = f"{path}: list {number}"
        value = json_io.expect(item, str if texts else dict, where, "it")
        yield {"utt": str(number), "text": value} if texts else value, where


def find_separator(line: str) -> str:
    return next((mark for mark in "\t;|" if mark in line), ",")


def split_row(line: str, mark: str | None = None) -> list[str]:
    """Return the fields of a line of a table, between marks; beside tabs quotes are letters."""
    mark = mark or find_separator(line)
    if not line or mark == "\t":
        return line.split("\t") if line else []
    try:
        return next(csv.reader([line], delimiter=mark), [])
    except csv.Error:
        return []


def choose(names: Iterable[str], known: Iterable[str]) -> str | None:
    """Return the first of `known` names, in any case, that is among `names`, as it is there."""
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in known if name in lower), None)
