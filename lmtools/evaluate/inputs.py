"""References and hypotheses from files of any known format, joined by utterance id, and normalised
alike before they are compared.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.evaluate.corpus import Evaluation
from lmtools.evaluate.nbest import reference
from lmtools.formats import FORMATS, detect, edits
from lmtools.formats.kaldi_text import list_speakers
from lmtools.formats.lists import Side, join_ids, join_texts
from lmtools.formats.nbest import ctm, stm
from lmtools.formats.registry import find_format
from lmtools.formats.texts import KALDI, read_kaldi, read_sentences
from lmtools.text.normaliser import parse_normaliser
from lmtools.text.unify import unifier
from lmtools.types import EMPTY, SESSION, NBest

UNSAID = "norm:none"  # in the signatures of error rates


@dataclass(frozen=True)
class Texts:
    """One file: texts by utterance (first hypotheses of lists), the lists if any, and who speaks
    where the file says so.
    """

    path: str
    texts: Mapping[str, str]
    lists: tuple[NBest, ...] | None = None
    speakers: Mapping[str, str] = field(default_factory=lambda: EMPTY)


def load(path: str, spec: str | None = None) -> Texts:
    """Load the texts in `path`: of the format `spec`, one that recognises it, or Kaldi text."""
    name = spec or (KALDI if path == "-" else detect(path, default=KALDI))
    if spec is None and name == KALDI:
        return Texts(path, read_kaldi(path, "--plain", f"name its format: --format {KALDI}"))
    form = find_format(name, FORMATS)
    nbests = list(form.read(path))
    best = {nbest.utt: nbest.hyps[0].text for nbest in nbests if nbest.hyps}
    lists = form.lists or any(nbest.ref is not None for nbest in nbests)
    held = tuple(nbests) if lists else None
    return Texts(path, best, held, speakers=list_speakers(nbests))


def cut_words(
    ref: str, hyps: Sequence[str]
) -> tuple[Texts, list[Texts], Mapping[str, stm.StmSegment]]:
    """Return the texts of an stm by segment, those of each ctm, and the segments, without those
    that sclite ignores; UserError for a ctm with a channel that the stm lacks.
    """
    channels = stm.read_channels(ref)
    segments = {
        f"{row.recording}-{row.channel}-{place:04d}": row
        for rows in channels.values()
        for place, row in enumerate(rows)
    }
    utts = {id(row): utt for utt, row in segments.items()}
    texts = []
    for path in hyps:
        said: dict[str, list[tuple[float, str]]] = {utt: [] for utt in segments}
        for segment, start, word in place_words(path, channels, ref):
            said[utts[id(segment)]].append((start, word))
        ordered = {utt: sorted(words, key=itemgetter(0)) for utt, words in said.items()}
        joined = {utt: " ".join(word for _, word in words) for utt, words in ordered.items()}
        texts.append({utt: joined[utt] for utt, row in segments.items() if not row.ignored})
    scored = {utt: row for utt, row in segments.items() if not row.ignored}
    own = Texts(ref, {utt: row.text for utt, row in scored.items()})
    return own, [Texts(*one) for one in zip(hyps, texts, strict=True)], scored


def place_words(
    path: str, channels: Mapping[tuple[str, str], Sequence[stm.StmSegment]], ref: str
) -> Iterator[tuple[stm.StmSegment, float, str]]:
    """Yield the segment, start and text of each word of a ctm: the first segment of its channel
    that ends after the word's middle, or the last; UserError for an unknown channel.
    """
    ends = {
        names: list(accumulate((row.end for row in rows[:-1]), max))
        for names, rows in channels.items()
    }
    for where, recording, columns in ctm.read_rows(path):
        if columns:  # else a comment says that there are no words
            channel, start, duration, word, *_ = columns
            names = recording.lower(), channel.lower()
            if names not in channels:
                raise UserError(
                    f"{where}: recording {recording!r}, channel {channel!r} is not in {ref}; give"
                    " the hypotheses of these recordings, under the same names of channels"
                )
            place = bisect_right(ends[names], float(start) + float(duration) / 2)
            yield channels[names][place], float(start), word


def load_plain(path: str) -> Texts:
    """Load the lines of `path` under their numbers from 1."""
    return Texts(path, {str(number): line for number, line in enumerate(read_sentences(path), 1)})


def references(sources: Sequence[Texts]) -> dict[str, str | tuple[str, ...]]:
    """Return the references in files: of their lists, or their texts; of several files several an
    utterance. UserError where the files have other utterances.
    """
    first, *more = [own_references(source) for source in sources]
    if not more:
        return first
    for source, other in zip(sources[1:], more, strict=True):
        if odd := [utt for utt in [*first, *other] if (utt in first) != (utt in other)]:
            raise UserError(
                f"{source.path}: not the utterances of {sources[0].path} (first {odd[0]!r}); give"
                " references of the same ones"
            )
    return {
        utt: tuple(text for refs in (first, *more) for text in refs_of(refs[utt])) for utt in first
    }


def pair_hypotheses(
    refs: Mapping[str, str | tuple[str, ...]], hyp: Texts
) -> list[tuple[str, list[str]]]:
    """Return each first reference beside its hypotheses, of utterances that have some."""
    lists = {nbest.utt: [hyp.text for hyp in nbest.hyps] for nbest in hyp.lists or ()}
    lists = {utt: [text] for utt, text in hyp.texts.items()} | lists
    return [(refs_of(ref)[0], lists[utt]) for utt, ref in refs.items() if lists.get(utt)]


def refs_of(ref: str | tuple[str, ...]) -> tuple[str, ...]:
    return (ref,) if isinstance(ref, str) else ref


def own_references(source: Texts) -> dict[str, str | tuple[str, ...]]:
    if source.lists is None:
        return dict(source.texts)
    try:
        return {nbest.utt: reference(nbest) for nbest in source.lists}
    except UserError as error:
        raise UserError(f"{source.path}: {error}") from None


def join(hyp: Texts, refs: Mapping[str, object], ref: Texts) -> Texts:
    """Return hypotheses under the ids of `ref`; UserError where some have none."""
    if not refs:  # which evaluation tells
        return hyp
    ids = join_ids(Side(hyp.texts, hyp.path), Side(refs, ref.path), "hypotheses have no reference")
    lists = hyp.lists and tuple(replace(n, utt=ids.get(n.utt, n.utt)) for n in hyp.lists)
    said = {ids.get(utt, utt): speaker for utt, speaker in hyp.speakers.items()}
    texts = {ids[utt]: text for utt, text in hyp.texts.items()}
    return replace(hyp, texts=texts, lists=lists, speakers=said)


def join_sessions(texts: Texts, path: str) -> Texts:
    """Return texts by session, those of its utterances joined in order; sessions are of a file, of
    lists, or of ids (formats/lists.py). UserError for references of utterances that are no session.
    """
    lists = texts.lists or [NBest(utt, ()) for utt in texts.texts]
    parts = (one for one in lists if one.extra.get(SESSION) != one.utt)
    if said := next((one.utt for one in parts if one.ref is not None), None):
        raise UserError(
            f"{texts.path}: {said!r} has a reference of its own; leave out --session, or give one"
            " reference a session with --ref"
        )
    return Texts(texts.path, join_texts(texts.texts, lists, path or None))


def same_length(ref: Texts, hyp: Texts) -> None:
    """Raise UserError unless two plain texts have as many lines."""
    if len(ref.texts) != len(hyp.texts):
        raise UserError(
            f"{hyp.path}: {len(hyp.texts)} lines against {len(ref.texts)} in {ref.path}; give one"
            " line a reference line"
        )


def refuse_first_words(ref: Texts, hyp: Texts) -> None:
    """Raise UserError if two texts of as many lines have ids that seem to be first words."""
    ids = "".join((*ref.texts, *hyp.texts))
    differ = len(ref.texts) == len(hyp.texts) and ref.texts.keys() != hyp.texts.keys()
    if differ and ref.lists is hyp.lists is None and not any(map(str.isdigit, ids)):
        raise UserError(
            f"{hyp.path}: the first words of its lines are not those of {ref.path}; make the ids"
            " the same on both sides, or give --plain if lines have none"
        )


def lists_of(ref: Texts, hyp: Texts, refs: Mapping[str, str]) -> list[NBest]:
    """Return the lists of `hyp`, or else `ref`, under the references; missing ones are empty."""
    lists = hyp.lists if hyp.lists is not None else ref.lists
    if lists is None:
        raise UserError(
            f"{hyp.path}: holds no N-best lists, so there is no oracle; give an nbest.jsonl"
        )
    by_utt = {nbest.utt: nbest.hyps for nbest in lists}
    return [
        NBest(utt, by_utt.get(utt, ()), refs_of(ref)[0], more_refs=refs_of(ref)[1:])
        for utt, ref in refs.items()
    ]


@dataclass(frozen=True)
class TextRules:
    """A function text -> text for both sides, and what signatures say of it."""

    change: Callable[[str], str]
    signature: str

    @classmethod
    def read(
        cls, forms: Sequence[str], normaliser: str | None, map_words: str | None
    ) -> "TextRules | None":
        """Return the rules of forms of Unicode, then of a normaliser, then of a file of words, as
        `lmtools convert` has them; None without any.
        """
        if not (forms or normaliser or map_words):
            return None
        unify, normalise = unifier(forms), parse_normaliser(normaliser or "none")
        spellings = edits.read_spellings(map_words) if map_words else {}
        rule_signatures = [normalise.signature] if normaliser or not forms else []
        signature = "+".join([*forms, *rule_signatures])
        if map_words:
            content = hashlib.sha256(json.dumps(spellings, sort_keys=True).encode())
            signature += f"+{Path(map_words).name}:{content.hexdigest()[:8]}"
        change = cache(lambda text: edits.spell(normalise(unify(text)), spellings))
        return cls(change, signature)

    def rewrite(self, source: Texts) -> Texts:
        """Return a file's texts, and lists with references, by the rules."""
        lists = source.lists and tuple(
            edits.rewrite_list(nbest, self.change, self.change) for nbest in source.lists
        )
        texts = {utt: self.change(text) for utt, text in source.texts.items()}
        return replace(source, texts=texts, lists=lists)

    def sign(self, result: Evaluation) -> Evaluation:
        signature, rules = result.signature, f"norm:{self.signature}"
        signed = signature.replace(UNSAID, rules) if UNSAID in signature else f"{signature}|{rules}"
        return replace(result, signature=signed)
