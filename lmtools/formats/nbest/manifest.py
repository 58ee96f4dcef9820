"""Manifests: the text of each recording of a data set, as NeMo, Common Voice and others keep it.

JSON objects, one a line or in a list, or a table (CSV, TSV) whose first line names its columns. An
utterance is called by the first of IDS, or of PATHS without directory and suffix. Where NeMo wrote
what it recognised beside the text (`pred_text`), that is the hypothesis and the text its reference.
The format is read, not written.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats import checks
from lmtools.formats.json_lists import json_io
from lmtools.formats.registry import read_beginning
from lmtools.types import Hypothesis, NBest

SUMMARY = "manifests of data sets: JSON objects, CSV or TSV with a column of texts"
IDS = ("utt", "utt_id", "utterance_id", "id", "key")
PATHS = ("audio_filepath", "wav_filename", "audio_path", "file_name", "path", "file", "wav")
TEXTS = ("text", "sentence", "transcript", "transcription", "wrd")
HYPS = ("pred_text", "hyp", "hypothesis", "prediction")

write = checks.refuse_write


def recognises(path: Path, first: str) -> bool:
    """Return whether the first object, or the first line's columns, name utterances and texts."""
    names: Iterable = ()
    if first.lstrip().startswith(("{", "[")):
        head = read_beginning(path).decode("utf-8-sig", "replace").lstrip("[ \t\r\n")
        try:
            tree, _ = json.JSONDecoder().raw_decode(head)
        except (ValueError, RecursionError):
            return False
        rich = isinstance(tree, dict) and any(
            isinstance(value, (dict, list)) or "score" in name or "confidence" in name
            for name, value in tree.items()
        )
        if isinstance(tree, dict) and not rich:
            names = [name for name, value in tree.items() if isinstance(value, str)]
    elif first:
        names = split_row(first)
    return bool(choose(names, IDS + PATHS) and choose(names, TEXTS + HYPS))


def read(path) -> Iterator[NBest]:
    """Read the text of each utterance, or the hypothesis with its reference."""
    for utt, text, hyp, where in rows(path):
        if text is None and hyp is None:
            raise UserError(f"{where}: no text; add it under {TEXTS[0]!r}")
        ref = text if hyp is not None else None
        yield NBest(utt, (Hypothesis(" ".join((text if hyp is None else hyp).split())),), ref)


def rows(path) -> Iterator[tuple[str, str | None, str | None, str]]:
    """Yield name, text, what was recognised (None: none) and place; UserError without name."""
    utterances = checks.Utterances()
    for tree, where in read_trees(path):
        name = choose(tree, IDS + PATHS) or PATHS[0]
        utt = json_io.member(tree, name, str, where)
        utt = PurePath(utt).stem if name.lower() in PATHS else utt
        if utt in utterances and "offset" in tree:
            utt = f"{utt}-{tree['offset']}"
        texts = (
            json_io.optional(tree, choose(tree, keys) or "", str, where) for keys in (TEXTS, HYPS)
        )
        yield utterances.add(utt, where), *texts, where


def read_trees(path) -> Iterator[tuple[Mapping, str]]:
    """Yield the values of each row by column, and its place."""
    lines = read_lines(path)
    number, first = next(((n, line) for n, line in lines if line.strip()), (1, ""))
    if first.lstrip().startswith("["):
        yield from json_io.read_list(path)
    elif first.lstrip().startswith("{"):
        yield from json_io.read_objects(path)
    else:
        names = split_row(first)
        for number, line in lines:
            values, where = split_row(line, "\t" in first), f"{path}:{number}"
            if line and len(values) != len(names):
                raise UserError(
                    f"{where}: {len(values)} columns, not {len(names)}; correct the line"
                )
            if line:
                yield dict(zip(names, values, strict=True)), where


def split_row(line: str, tabs: bool | None = None) -> list[str]:
    """Return the fields of a line of a table; of `tabs` quotes are letters."""
    if not line:
        return []
    if tabs or (tabs is None and "\t" in line):
        return line.split("\t")
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def choose(names: Iterable[str], known: Iterable[str]) -> str | None:
    """Return the first of `known` names, in any case, that is among `names`, as it is there."""
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in known if name in lower), None)
