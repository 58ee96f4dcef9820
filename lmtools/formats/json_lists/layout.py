"""A format of JSON as data: `Layout` says where its lists stand and what their objects hold, `read`
and `write` do the rest for all of them.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.formats.checks import Utterances, check_nbests, components, one_score, refuse_write
from lmtools.formats.json_lists import json_io
from lmtools.formats.json_lists.json_io import Entry
from lmtools.formats.registry import Format
from lmtools.types import EMPTY, Hypothesis, NBest

# How a file holds its lists: what stands before the first, between two, and after the last
ROWS = {
    "lines": ("", "\n", ""),
    "list": ("[\n", ",\n", "]\n"),
    "object": ("{\n", ",\n", "}\n"),
    "utts": ('{"utts": {\n', ",\n", "}}\n"),
}


@dataclass(frozen=True)
class Layout:
    """A format of N-best lists in JSON.

    `entries` yields (utterance, object, where it stands) of a file; `parse` makes the list of one;
    `finish`, where all lists have to be known first, makes other lists of those of a file, whose
    scores may differ before. `spell` makes the object of a list (None: the format is read, not
    written), `rows` names how a file holds them. All but `recognises` and `entries` take the
    format's `options` by name.
    """

    summary: str
    recognises: Callable[[Path, str], bool]
    entries: Callable[[object], Iterable[Entry]]
    parse: Callable[..., NBest]
    finish: Callable[..., Iterable[NBest]] | None = None
    spell: Callable[..., dict] | None = None
    rows: str = "list"
    options: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    def as_format(self) -> Format:
        """Return the format that the registry knows."""
        write = partial(write_lists, self) if self.spell else refuse_write
        return Format(
            self.summary, self.recognises, partial(read_lists, self), write, options=self.options
        )


def read_lists(layout: Layout, path, **options) -> Iterator[NBest]:
    """Read the lists of a file or directory; UserError for what is not as the layout says."""
    nbests = parse_entries(layout, path, options)
    yield from layout.finish(nbests, path, **options) if layout.finish else nbests


def parse_entries(layout: Layout, path, options: Mapping[str, str]) -> Iterator[NBest]:
    """Parse the lists of a file one by one."""
    names = None
    for utt, tree, where in layout.entries(path):
        nbest = layout.parse(utt, tree, where, **options)
        if not layout.finish:
            names = components(nbest, names, where)
        yield nbest


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
    ref = json_io.optional(tree, "ref", str, where)
    items = json_io.member(tree, hyps, list, where)
    hypotheses = number_hypotheses(items, parse, where, kind)
    return NBest(utt, hypotheses, ref, json_io.extras(tree, ("utt", "ref", hyps), where))


def parse_scored(tree, where: str, score: str = "score", name: str = "am") -> Hypothesis:
    """Return the hypothesis of an object with a `text` and perhaps a number under `score`."""
    text = json_io.member(json_io.expect(tree, dict, where, "it"), "text", str, where)
    scores = {name: json_io.expect(tree[score], float, where, score)} if score in tree else {}
    return Hypothesis(text, scores, json_io.extras(tree, ("text", score), where))


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


def write_lists(layout: Layout, nbests: Iterable[NBest], path, **options) -> None:
    """Write lists, at once where `path` is standard output."""
    opening, between, closing = ROWS[layout.rows]
    count = 0
    with atomic_text(path) as out:
        out.write(opening)
        for count, nbest in enumerate(check_nbests(nbests, path), 1):
            tree = layout.spell(nbest, f"{path}: utterance {nbest.utt!r}", **options)
            key = f"{json.dumps(nbest.utt, ensure_ascii=False)}: " if "{" in opening else ""
            out.write(between * (count > 1) + key + json.dumps(tree, ensure_ascii=False))
            if str(path) == "-":
                out.flush()
        out.write("\n" * (count > 0) + closing)


def spell_keyed(nbest: NBest, where: str, hyps: str, spell: Callable) -> dict:
    """Return the object of a list with what `spell` makes of its hypotheses under `hyps`."""
    ref = {} if nbest.ref is None else {"ref": nbest.ref}
    items = [spell(hyp, where) for hyp in nbest.hyps]
    return {**json_io.values_of(nbest.extra), "utt": nbest.utt, **ref, hyps: items}


def spell_scored(hyp: Hypothesis, where: str, keys: Mapping[str, str]) -> dict:
    """Return the object of a hypothesis: its extras, and its `text` and one `score` under the
    `keys` that stand for these, in their order.
    """
    values = {"text": hyp.text, "score": one_score(hyp, where)}
    given = {key: values[name] for key, name in keys.items() if values[name] is not None}
    return {**json_io.values_of(hyp.extra), **given}
