"""N-best lists scored: read, scored part by part (lmtools.score.texts), and written."""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lmtools.base.computing import WHOLE, Computing, Shard
from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.base.specs import LMSpec
from lmtools.formats import kaldi_tables, kaldi_text, scores, stream
from lmtools.formats.lists import other_number, place_lines, read_numbers, refuse_disorder
from lmtools.formats.registry import parse_specifier
from lmtools.formats.texts import read_sentences
from lmtools.score.base import Scorer
from lmtools.score.load import load
from lmtools.score.texts import TextScores, open_cache, score_texts
from lmtools.text.unknown import LOOKED_AT, describe_unknown, doubt_pieces
from lmtools.types import NBest

WRITTEN = {"text": "written"}  # in signatures: scores are of what the recogniser wrote
TOGETHER = 200_000  # hypotheses, at least, of a file that are in memory and share their beginnings


@dataclass
class Totals:
    """Numbers of scored utterances, hypotheses, tokens and unknown tokens."""

    utterances: int = 0
    hypotheses: int = 0
    tokens: int = 0
    unknown: int = 0

    def add(self, utterances: int, scores: TextScores) -> None:
        self.utterances += utterances
        self.hypotheses += len(scores.tokens)
        self.tokens += int(scores.tokens.sum())
        self.unknown += int(scores.unknown.sum())


class ListParts:
    """N-best lists in `source`, in parts scored together, at least one: TOGETHER hypotheses of a
    file (one part is read once), a list of a pipe. `form` None: recognised; in a pipe JSON lines,
    or Kaldi's. UserError without lists.
    """

    def __init__(self, source: str, form: str | None):
        self.source, self.form = source, form
        self.piped = source == "-" or bool(parse_specifier(source))
        if self.piped:
            self.form = form or ("jsonl" if source == "-" else "kaldi-nbest")
        self.only: list[NBest] | None = None

    def __iter__(self) -> Iterator[list[NBest]]:
        if self.only:
            yield self.only
            return
        part, size, parts = [], 0, 0
        for nbest in stream(self.source, self.form):
            part.append(nbest)
            size += len(nbest.hyps)
            if self.piped or size >= TOGETHER:
                yield part
                part, size, parts = [], 0, parts + 1
        if part:
            self.only = None if parts else part
            yield part
        elif not parts:
            raise UserError(f"{self.source}: no utterances; give the recogniser's N-best lists")


@dataclass(frozen=True)
class Sources:
    """Sources of lists, by utterance or in order. A hypothesis is scored given its source; with
    `reverse` the source given it (the channel of Yee et al. 2019).
    """

    path: str
    texts: Mapping[str, str] | Sequence[str]
    reverse: bool = False

    @classmethod
    def read(cls, path: str, lines: bool = False, reverse: bool = False) -> "Sources":
        """Read the sources in a file: Kaldi text, or plain text where it is `lines`."""
        return cls(path, (read_sentences if lines else kaldi_text.read)(path), reverse)

    @property
    def signature(self) -> dict[str, str]:
        """Return the entries for the header of scores: the direction, where it is reversed."""
        return {"direction": "reverse"} if self.reverse else {}

    def pair(self, nbests: Sequence[NBest], before: int, lists: str) -> list[tuple[str, str]]:
        """Return (source, target) of each hypothesis behind the first `before` lists."""
        pairs = []
        for nbest, text in zip(nbests, self.list_texts(nbests, before, lists), strict=True):
            pairs += [(hyp.text, text) if self.reverse else (text, hyp.text) for hyp in nbest.hyps]
        return pairs

    def list_texts(self, nbests: Sequence[NBest], before: int, lists: str) -> list[str]:
        """Return the sources of lists that have so many `before` them, by id, by sentence number or
        in order.
        """
        utts = [nbest.utt for nbest in nbests]
        if isinstance(self.texts, Mapping):
            if missing := [utt for utt in utts if utt not in self.texts]:
                raise UserError(
                    f"{self.path}: no source for utterance {missing[0]!r} of {lists}; make the ids"
                    " the same on both sides"
                )
            return [self.texts[utt] for utt in utts]
        end, lines = before + len(utts), len(self.texts)
        if end > lines:
            raise other_number(self.path, lines, f"{end} utterances or more", lists)
        if not before and len(utts) == lines:
            return [self.texts[i] for i in place_lines(utts, lines, self.path, lists)]
        for earlier, later in pairwise(read_numbers(utts)):
            refuse_disorder(earlier, later, lists)
        return self.texts[before:end]

    def check_number(self, utterances: int, lists: str) -> None:
        """Raise UserError where lines are more than the utterances of all `lists`."""
        if not isinstance(self.texts, Mapping) and utterances < len(self.texts):
            raise other_number(self.path, len(self.texts), f"{utterances} utterances", lists)


def score_lists(
    lists: ListParts,
    out: str,
    spec: LMSpec,
    computing: Computing,
    sources: Sources | None = None,
    written: bool = False,
    shard: Shard = WHOLE,
) -> Totals:
    """Write the scores of N-best lists to `out`, each part when done. `sources`: what they
    translate, for a `spec` of `pairs`; `written`: of what the recogniser wrote; `shard`: of this
    part, with gaps for the others. UserError without lists.
    """
    source, parts = lists.source, iter(lists)
    first = next(parts)  # before the model, which takes longer
    scorer, totals, texts, write = load(spec, computing), Totals(), [], None
    more = {**(sources.signature if sources else {}), **(WRITTEN if written else {})}
    signature, opened = {**scorer.signature, **more}, open_cache(scorer, computing)
    with contextlib.closing(opened) as cache, contextlib.ExitStack() as output:
        for nbests in itertools.chain([first], parts):
            hyps = hypothesis_texts(nbests, written)
            pairs = sources and sources.pair(nbests, totals.utterances, source)
            read = hyps if pairs is None else pairs
            flat = score_texts(read, scorer, computing, cache, shard=shard)
            write = write or output.enter_context(write_scores(out, signature, shard.count > 1))
            bounds = itertools.accumulate((len(nbest.hyps) for nbest in nbests), initial=0)
            for nbest, rows in zip(nbests, itertools.pairwise(bounds), strict=True):
                write(nbest, flat.log_prob[slice(*rows)], flat.tokens[slice(*rows)])
            predicted = read if pairs is None else [target for _, target in pairs]
            texts += predicted[: LOOKED_AT - len(texts)]
            totals.add(len(nbests), flat)
        if sources:
            sources.check_number(totals.utterances, source)
    for note in scorer.notes if totals.unknown else ():
        say(note)
    words = totals.tokens - totals.hypotheses
    warn_scored(source, texts, (totals.unknown, words), scorer, lists=True)
    return totals


def hypothesis_texts(nbests: Iterable[NBest], written: bool) -> list[str]:
    """Return the texts of all hypotheses, or what the recogniser wrote for them."""
    return [hyp.display if written else hyp.text for nbest in nbests for hyp in nbest.hyps]


@contextlib.contextmanager
def write_scores(
    path: str, signature, gaps: bool = False
) -> Iterator[Callable[[NBest, Sequence, Sequence], None]]:
    """Yield a function that writes a list's scores and tokens, or costs of a Kaldi table."""
    if not parse_specifier(path):
        with scores.writing(path, signature, gaps) as write:
            yield write
        return
    with kaldi_tables.Writer(path) as table:

        def write_costs(nbest, log_prob, tokens):
            for rank, (hyp, value) in enumerate(zip(nbest.hyps, log_prob, strict=True), 1):
                cost = repr(-float(value))
                table.write(f"{nbest.utt}-{hyp.extra.get('n', rank)}", cost)

        yield write_costs


def warn_scored(path, texts, counts: tuple[int, int], scorer: Scorer, lists: bool = False) -> None:
    """Say the line of `doubt_scored`, if there is one."""
    for line in doubt_scored(path, texts, counts, scorer, lists=lists):
        say(line)


def doubt_scored(
    path, texts: Iterable[str], counts: tuple[int, int], scorer: Scorer, lists: bool = False
) -> Iterator[str]:
    """Yield the line of `describe_unknown` on `counts` of tokens of `texts` from `path`, after that
    of pieces in lists.
    """
    texts = list(texts)
    yield from doubt_pieces(path, texts if lists else ())
    read = {"texts": map(scorer.normalise, texts), "known": scorer.knows, "lists": lists}
    yield from describe_unknown(path, *counts, scorer.spec.lm, **read)
