"""Beam search of a translation model.

In each step the `beam` best prolongations of a source's prefixes are kept; those that end are
finished, the others go on. So a beam of 1 is greedy search. Finished hypotheses are ranked by the
sum of their tokens' log-probabilities, the end's with them, divided by their number to the power of
the length penalty.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lmtools.base.errors import UserError
from lmtools.models.outputs.logits import whole_rows
from lmtools.score.translation import TranslationScorer
from lmtools.text.subword import BOS, EOS, MASK, PAD, UNK

NEVER = (PAD, BOS, MASK, UNK)  # ids that no hypothesis has


@dataclass(frozen=True, order=True)
class Finished:
    """A finished hypothesis: sum in nats divided by length, the sum, ids without the end."""

    norm: float
    log_prob: float
    ids: tuple[int, ...]


@dataclass
class Beam:
    """The finished hypotheses of a source, `size` at most, worst first, of `longest` tokens."""

    size: int
    penalty: float
    longest: int
    finished: list[Finished] = field(default_factory=list)

    def finish(self, ids: Sequence[int], log_prob: float) -> None:
        """Take a finished hypothesis of these ids, if it is among the best."""
        norm = self.divide(log_prob, len(ids) + 1)
        push = heapq.heappush if len(self.finished) < self.size else heapq.heappushpop
        push(self.finished, Finished(norm, log_prob, tuple(ids)))

    def divide(self, log_prob: float, tokens: int) -> float:
        return log_prob / tokens**self.penalty

    def is_done(self, log_prob: float) -> bool:
        """Return whether no continuation can come among the finished: to be longest is best."""
        if log_prob == -torch.inf:
            return True
        full = len(self.finished) == self.size
        return full and self.finished[0].norm >= self.divide(log_prob, self.longest)

    def ranked(self) -> list[Finished]:
        return sorted(self.finished, key=lambda hypothesis: (-hypothesis.norm, hypothesis.ids))


class TranslationSearch:
    """The search of several sources at once, a row each, a place for each prefix."""

    def __init__(self, scorer: TranslationScorer, sources: Sequence, beams: Sequence[Beam]):
        self.scorer, self.decoding = scorer, scorer.decode(sources)
        self.going = list(beams)
        rows, device = (len(beams), 1), scorer.device
        self.tokens = torch.full(rows, BOS, device=device)
        self.parents = torch.zeros_like(self.tokens)
        self.totals = torch.zeros(rows, dtype=torch.float64, device=device)
        self.prefixes = torch.zeros(*rows, 0, dtype=torch.int64, device=device)

    def step(self, length: int) -> None:
        """Prolong the prefixes by a token, so that what is finished has `length` tokens."""
        size = self.going[0].size
        at_end = torch.tensor([beam.longest == length for beam in self.going])
        log_p, ids = self.best_next(size, at_end.to(self.scorer.device))
        sums = (self.totals[..., None] + log_p).flatten(1)
        totals, chosen = sums.topk(min(size, sums.shape[1]), sorted=True)
        self.parents, self.tokens = chosen // ids.shape[-1], ids.flatten(1).gather(1, chosen)
        before = self.prefixes.gather(1, self.parents[..., None].expand(-1, -1, length - 1))
        ended = (self.tokens == EOS) & (totals > -torch.inf)
        rows, places = (index.tolist() for index in ended.nonzero(as_tuple=True))
        for row, place, total in zip(rows, places, totals[ended].tolist(), strict=True):
            self.going[row].finish(before[row, place].tolist(), total)
        self.totals = totals.masked_fill(ended, -torch.inf)
        self.prefixes = torch.cat([before, self.tokens[..., None]], 2)

    def drop_done(self) -> None:
        """Leave out the sources whose search can find nothing better."""
        best = zip(self.going, self.totals.amax(1).tolist(), strict=True)
        left = [row for row, (beam, total) in enumerate(best) if not beam.is_done(total)]
        if len(left) == len(self.going):
            return
        self.going = [self.going[row] for row in left]
        rows = torch.tensor(left, dtype=torch.int64, device=self.scorer.device)
        for name in ("tokens", "parents", "totals", "prefixes"):
            setattr(self, name, getattr(self, name)[rows])
        if left:
            self.decoding.keep(rows)

    def best_next(self, count: int, at_end: Tensor) -> tuple[Tensor, Tensor]:
        """Return the `count` most probable next ids behind each of the prefixes, fewer where there
        are fewer ids: their log p, float64 (B, K, count), and the ids; -inf of ids that no
        hypothesis has, and of all but the end where a source is `at_end`, bool (B,).
        """
        scorer, tokens = self.scorer, self.tokens
        heads = scorer.next_heads(self.decoding, tokens, self.parents)
        ending = at_end.repeat_interleave(tokens.shape[1])
        # blocks: nothing as large as all prefixes by the vocabulary is taken
        rows = whole_rows(scorer.lm.size, scorer.device)
        parts = []
        for block, last in zip(heads.split(rows), ending.split(rows), strict=True):
            log_p = scorer.output.distribution(block)
            log_p[:, NEVER] = -torch.inf
            end = log_p[:, EOS].clone()
            log_p.masked_fill_(last[:, None], -torch.inf)
            log_p[:, EOS] = end
            # NaN is before all
            parts.append(log_p.topk(min(count, log_p.shape[1]), sorted=True))
        best, ids = (torch.cat(part).view(*tokens.shape, -1) for part in zip(*parts, strict=True))
        if best.isnan().any():
            raise UserError(
                f"{scorer.signature['lm']}: gives a token the probability NaN; the model is"
                " damaged, train it again"
            )
        return best.double(), ids


@torch.inference_mode()
def search(
    scorer: TranslationScorer, sources: Sequence[Sequence[int]], beam: int, penalty: float = 1.0
) -> list[list[Finished]]:
    """Return the best hypotheses of each source, `beam` at most, best first; sources are ids
    without the end, which fit the positions, and `penalty` is 0 or more.

    A hypothesis has 2 x source + 10 tokens at most, or as many as there are positions; what has not
    ended before its last token ends there. UserError where the model's log-probabilities are no
    numbers.
    """
    most = scorer.longest + 1
    beams = [Beam(beam, penalty, min(most, 2 * len(ids) + 10)) for ids in sources]
    going = TranslationSearch(scorer, sources, beams)
    for length in range(1, most + 1):
        going.step(length)
        going.drop_done()
        if not going.going:
            break
    return [beam.ranked() for beam in beams]
