"""Formats in JSON: strict reading, what is expected where, extras as JSON text."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import not_utf8, read_bytes, read_lines
from lmtools.base.grammar import Finite, encodable, fit, parse_json, refuse_twice
from lmtools.formats.checks import Utterances, check_nbests, components, refuse_write
from lmtools.formats.registry import HEAD, Format, list_children, read_beginning
from lmtools.types import EMPTY, Hypothesis, NBest

LOOKED_AT = 100  # files of a directory, of which the first ones may be of silence
Entry = tuple[str, dict, str]  # an utterance, its object, the place for messages


def load(path, errors: str = "strict"):
    """Load the JSON value in `path` (.gz, .xz, `-`); `errors` as of bytes.decode."""
    data = read_bytes(path)
    try:
        return json.loads(data.decode("utf-8-sig", errors), object_pairs_hook=refuse_twice)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise not_utf8(path, f"{path}:{line}") from None
    except json.JSONDecodeError as error:
        where, remedy = f"{path}:{error.lineno}", "write the file again"
        if error.msg == "Extra data":
            remedy = "of several values each has to be a line: jq -c . F > NEW"
        cause = f"not JSON ({error.msg} at column {error.colno})"
        raise UserError(f"{where}: {cause}; {remedy}") from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply; write the file again") from None
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); write the file again") from None


def recognise(opening: str, *names: str) -> Callable[[Path, str], bool]:
    """Return `recognises` of a format that begins with `opening` and has all `names` (regular
    expressions) in its first line, or more where that is short.
    """

    def recognises(path: Path, first: str) -> bool:
        if not first.lstrip().startswith(opening):
            return False
        if len(first) <= HEAD // 2:
            first = read_beginning(path).decode("utf-8-sig", "replace")
        return all(re.search(name, first) for name in names)

    return recognises


def recognise_results(*names: str, opening: str = "{") -> Callable[[Path, str], bool]:
    """Return `recognises` of `results`: objects, or a directory of which a first file holds one."""
    recognises = recognise(opening, *names)

    def recognises_any(path: Path, first: str) -> bool:
        if not path.is_dir():
            return recognises(path, first)
        return any(
            recognises(file, read_beginning(file).decode("utf-8", "replace"))
            for file in result_files(path)[:LOOKED_AT]
        )

    return recognises_any


def result_files(path) -> list[Path]:
    return [child for child in list_children(path) if child.suffix == ".json" and child.is_file()]


def read_results(path) -> Iterator[Entry]:
    """Yield results: lines with `utt`, a file UTT.json, or a directory with one each."""
    if Path(path).is_dir() or holds_one(Path(path)):
        yield from read_files(path)
        return
    utterances = Utterances()
    for tree, where in read_objects(path):
        yield utterances.add(member(tree, "utt", str, where), where), tree, where


def holds_one(path: Path) -> bool:
    """Return whether a file is one object without an id, on one line or many, not lines of them."""
    if not path.is_file():
        return False
    lines = (line.rstrip() for _, line in read_lines(path) if line.strip())
    first, more = next(lines, ""), next(lines, None)
    alone = first and (more is None or not first.endswith("}"))
    return bool(alone) and not re.search(r'"utt"\s*:', first)


def read_files(path, read: Callable[[Path], object] = load) -> Iterator[Entry]:
    """Yield what a file UTT.json, or each in a directory, holds, as `read` reads it."""
    utterances = Utterances()
    files = result_files(path) if Path(path).is_dir() else [Path(path)]
    if not files:
        raise UserError(f"{path}: no file UTT.json; write the recogniser's results there")
    for child in files:
        tree = expect(read(child), dict, str(child), "the file")
        yield utterances.add(child.name.partition(".json")[0], str(child)), tree, str(child)


def read_objects(path) -> Iterator[tuple[dict, str]]:
    """Yield the JSON object of each line that is not empty, and its place; UserError for others."""
    for number, line in read_lines(path):
        if line.strip():
            where = f"{path}:{number}"
            yield expect(parse_json(line, where), dict, where, "the line"), where


def expect(value, kind: type, where: str, what: str):
    """Return `value` if it is of `kind`, finite and UTF-8; UserError otherwise."""
    if kind is float:
        return fit(value, Finite, where, whole=f"score {what!r}")
    fit(value, kind, where, whole=what)
    return encodable(value, where) if kind is str else value


def member(tree: Mapping, name: str, kind: type, where: str):
    """Return the value of `name` in an object; UserError if it is missing or of another kind."""
    if name not in tree:
        raise UserError(f"{where}: key {name!r} is missing; add it")
    return expect(tree[name], kind, where, name if kind is float else repr(name))


def optional(tree: Mapping, name: str, kind: type, where: str):
    """Return the value of `name` as `member` does, or None if it is missing or null."""
    return None if tree.get(name) is None else member(tree, name, kind, where)


def read_list(path) -> Iterator[tuple[dict, str]]:
    """Yield the objects, each with `path: list N`, of a file that is a list of them."""
    for number, tree in enumerate(expect(load(path), list, str(path), "the file"), 1):
        where = f"{path}: list {number}"
        yield expect(tree, dict, where, "it"), where


def extras(tree: Mapping, own: Iterable[str], where: str) -> dict[str, str]:
    """Return the entries of an object except those of its `own` keys, each value as JSON text."""
    own = set(own)
    return {
        encodable(name, where): as_text(value) for name, value in tree.items() if name not in own
    }


def as_text(value) -> str:
    """Return a value as JSON that UTF-8 can hold."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(value)
    return text


def value_of(text: str):
    """Return the value of an extra: the JSON of such a format, or the text of another one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def values_of(extra: Mapping[str, str]) -> dict:
    return {name: value_of(text) for name, text in extra.items()}


# How a file holds its lists: what stands before the first and after the last
ROWS = {"list": ("[\n", "]\n"), "object": ("{\n", "}\n")}


def json_format(
    summary: str, recognises: Callable, entries: Callable, parse: Callable, *,
    finish: Callable | None = None, writes: tuple[str, Callable] | None = None,
    options: Mapping[str, str] = EMPTY,
) -> Format:  # fmt: skip
    """Return the format of lists that `entries` takes apart into (utterance, object, place) and
    `parse` makes of one. `finish` makes other lists of all of a file; `writes`: how a file holds
    lists, and what makes one's object (None: not written). All take the `options`.
    """

    def read(path, **given) -> Iterator[NBest]:
        nbests = parse_entries(path, given)
        return finish(nbests, path, **given) if finish else nbests

    def parse_entries(path, given) -> Iterator[NBest]:
        names = None
        for utt, tree, where in entries(path):
            nbest = parse(utt, tree, where, **given)
            names = None if finish else components(nbest, names, where)
            yield nbest

    def write(nbests: Iterable[NBest], path, **given) -> None:
        opening, closing = ROWS[writes[0]]
        count = 0
        with atomic_text(path) as out:
            out.write(opening)
            for count, nbest in enumerate(check_nbests(nbests, path), 1):
                tree = writes[1](nbest, f"{path}: utterance {nbest.utt!r}", **given)
                key = f"{json.dumps(nbest.utt, ensure_ascii=False)}: " if "{" in opening else ""
                out.write(",\n" * (count > 1) + key + json.dumps(tree, ensure_ascii=False))
            out.write("\n" * (count > 0) + closing)

    return Format(summary, recognises, read, write if writes else refuse_write, options=options)


def unique(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries; UserError for an id that is no key or comes a second time."""
    utterances = Utterances()
    for utt, tree, where in entries:
        yield utterances.add(utt, where), tree, where


def number_hypotheses(
    items: Sequence, parse: Callable[[object, str], Hypothesis], where: str, kind="hypothesis"
) -> tuple[Hypothesis, ...]:
    """Return what `parse` makes of each item and of the place that names its `kind` and rank."""
    return tuple(parse(item, f"{where}: {kind} {rank}") for rank, item in enumerate(items, 1))


def parse_keyed(
    utt: str, tree: Mapping, where: str, hyps: str, parse: Callable, kind: str = "hypothesis"
) -> NBest:
    """Return the list whose hypotheses `parse` makes of the items under the key `hyps`."""
    ref = optional(tree, "ref", str, where)
    items = member(tree, hyps, list, where)
    hypotheses = number_hypotheses(items, parse, where, kind)
    return NBest(utt, hypotheses, ref, extras(tree, ("utt", "ref", hyps), where))


def parse_scored(tree, where: str, score: str = "score", name: str = "am") -> Hypothesis:
    """Return the hypothesis of an object with a `text` and perhaps a number under `score`."""
    text = member(expect(tree, dict, where, "it"), "text", str, where)
    scores = {name: expect(tree[score], float, where, score)} if score in tree else {}
    return Hypothesis(text, scores, extras(tree, ("text", score), where))


def split_columns(
    tree: Mapping, size: int | None, own: Iterable[str] = ()
) -> tuple[list[dict], dict]:
    """Return the entries of an object that are not its `own`: lists of `size` items, one a
    hypothesis, as an object a hypothesis, and the others; with None, no list is such a column.
    """
    rest = {name: value for name, value in tree.items() if name not in own}
    columns = {
        name: value
        for name, value in rest.items()
        if isinstance(value, list) and len(value) == size
    }
    rows = [{name: column[rank] for name, column in columns.items()} for rank in range(size or 0)]
    return rows, {name: value for name, value in rest.items() if name not in columns}


def drop_partial(nbests: Iterable[NBest], path, **options) -> Iterator[NBest]:
    """Yield the lists, without scores where some hypothesis has none or one of -inf."""
    nbests = list(nbests)
    hyps = [hyp for nbest in nbests for hyp in nbest.hyps]
    if all(hyp.scores and min(hyp.scores.values()) > -math.inf for hyp in hyps):
        yield from nbests
        return
    for nbest in nbests:
        yield replace(nbest, hyps=tuple(hyp.with_scores({}) for hyp in nbest.hyps))
