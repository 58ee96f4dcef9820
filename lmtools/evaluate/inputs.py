"""References and hypotheses from files of any known format, joined by utterance id, and normalised
alike before they are compared.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.evaluate.corpus import Evaluation
from lmtools.evaluate.nbest import reference
from lmtools.formats import FORMATS, detect, edits
from lmtools.formats.kaldi_text import list_speakers
from lmtools.formats.lists import Side, join_ids, join_texts
from lmtools.formats.nbest import trn
from lmtools.formats.registry import find_format
from lmtools.formats.texts import KALDI, read_kaldi, read_sentences
from lmtools.text.normaliser import parse_normaliser
from lmtools.text.unify import unifier
from lmtools.types import EMPTY, SESSION, NBest

UNSAID = "norm:none"  # in the signatures of error rates


@dataclass(frozen=True)
class Texts:
    """One file: texts by utterance (first hypotheses of lists), the lists if any, its format, and
    who speaks where the file says so.
    """

    path: str
    texts: Mapping[str, str]
    lists: tuple[NBest, ...] | None = None
    form: str = KALDI
    speakers: Mapping[str, str] = field(default_factory=lambda: EMPTY)


def load(path: str, spec: str | None = None, markup: bool = False) -> Texts:
    """Load the texts in `path`: of the format `spec`, one that recognises it, or Kaldi text."""
    name = spec or (KALDI if path == "-" else detect(path, default=KALDI))
    if spec is None and name == KALDI:
        return Texts(path, read_kaldi(path, "--plain", f"name its format: --format {KALDI}"))
    form = find_format(name, FORMATS)
    if markup and name == "trn":
        return Texts(path, trn.read(path, markup=True), form=name)
    nbests = list(form.read(path))
    best = {nbest.utt: nbest.hyps[0].text for nbest in nbests if nbest.hyps}
    lists = form.lists or any(nbest.ref is not None for nbest in nbests)
    held = tuple(nbests) if lists else None
    return Texts(path, best, held, name.partition(":")[0], speakers=list_speakers(nbests))


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
    """A function text -> text for both sides, or NIST's global map, and what signatures say."""

    change: Callable[[str], str]
    signature: str
    glm: Any = None

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

    @classmethod
    def read_map(cls, path, others: Sequence) -> "TextRules":
        """Return the rules of a global map; UserError beside `others`."""
        if any(others):
            raise UserError(
                f"{path}: --glm has rules of words of its own; leave out --normaliser, --unify and"
                " --map-words"
            )
        glm = open_door("nist", "glm:GlobalMap", "--glm")(path)
        return cls(str, glm.signature, glm)

    def rewrite(self, source: Texts, side: str = "hyp") -> Texts:
        """Return a file's texts, and lists with references, by the rules; `side`: ref or hyp."""
        kind = "trn" if source.form == "trn" else None
        hyps, refs = self.find_change("hyp", kind), self.find_change("ref", kind)
        lists = source.lists and tuple(
            edits.rewrite_list(nbest, hyps, refs) for nbest in source.lists
        )
        change = refs if side == "ref" else hyps
        texts = {utt: change(text) for utt, text in source.texts.items()}
        return replace(source, texts=texts, lists=lists)

    def find_change(self, side: str, kind: str | None = None) -> Callable[[str], str]:
        """Return what rewrites a side. A global map sees an stm, and a ctm or a trn."""
        if not self.glm:
            return self.change
        kind = kind or ("stm" if side == "ref" else "ctm")
        return cache(partial(self.glm.rewrite, kind=kind, side=side))

    def sign(self, result: Evaluation) -> Evaluation:
        signature, rules = result.signature, f"norm:{self.signature}"
        signed = signature.replace(UNSAID, rules) if UNSAID in signature else f"{signature}|{rules}"
        return replace(result, signature=signed)
