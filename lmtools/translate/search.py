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

from lmtools.device import PRECISIONS, autocast
from lmtools.errors import UserError
from lmtools.models.seq2seq import Decoding
from lmtools.objectives import pad_sentences
from lmtools.outputs.logits import whole_rows
from lmtools.score.neural import TranslationScorer
from lmtools.subword import BOS, EOS, MASK, PAD, UNK

NEVER = (PAD, BOS, MASK, UNK)  # ids that no hypothesis has


@dataclass(frozen=True, order=True)
class Finished:
    """A finished hypothesis: its sum in nats divided by length (`norm`), the sum (`log_prob`), the
    ids without the end.
    """

    norm: float
    log_prob: float
    ids: tuple[int, ...]


@dataclass
class Beam:
    """The finished hypotheses of one source, `size` at most, the worst of them first; `longest` is
    the most tokens of a hypothesis, the end among them.
    """

    size: int
    penalty: float
    longest: int
    finished: list[Finished] = field(default_factory=list)

    def finish(self, ids: Sequence[int], log_prob: float) -> None:
        """Take a finished hypothesis of these ids, if it is among the best."""
        norm = self.divide(log_prob, len(ids) + 1)
        one = Finished(norm, log_prob, tuple(ids))
        (heapq.heappush if len(self.finished) < self.size else heapq.heappushpop)(
            self.finished, one
        )

    def divide(self, log_prob: float, tokens: int) -> float:
        """Return the score by which hypotheses are ranked."""
        return log_prob / tokens**self.penalty

    def is_done(self, log_prob: float) -> bool:
        """Return whether no continuation of a prefix of this log-probability can come among the
        finished ones: it becomes no more probable, and to be the longest is best for it.
        """
        if log_prob == -torch.inf:
            return True
        full = len(self.finished) == self.size
        return full and self.finished[0].norm >= self.divide(log_prob, self.longest)

    def ranked(self) -> list[Finished]:
        """The finished hypotheses, best first."""
        return sorted(self.finished, key=lambda one: (-one.norm, one.ids))


@torch.inference_mode()
def search(
    scorer: TranslationScorer, sources: Sequence[Sequence[int]], beam: int, penalty: float = 1.0
) -> list[list[Finished]]:
    """The best hypotheses of each source, `beam` at most, best first; sources are ids without the
    end, which fit the positions, and `penalty` is 0 or more.

    A hypothesis has 2 x source + 10 tokens at most, or as many as there are positions; what has not
    ended before its last token ends there. UserError where the model's log-probabilities are no
    numbers.
    """
    most = scorer.lm.longest + 1
    beams = [Beam(beam, penalty, min(most, 2 * len(ids) + 10)) for ids in sources]
    device = scorer.device
    ids, lengths = (
        torch.from_numpy(array).to(device) for array in pad_sentences(sources, [], [EOS])
    )
    with autocast(device, scorer.precision):
        decoding = scorer.lm.trunk.decoding(ids, lengths)
    going = list(beams)  # one a row of all that follows
    tokens = torch.full((len(going), 1), BOS, device=device)
    parents = torch.zeros_like(tokens)
    totals = torch.zeros(len(going), 1, dtype=torch.float64, device=device)
    prefixes = torch.zeros(len(going), 1, 0, dtype=torch.int64, device=device)
    for length in range(1, most + 1):  # tokens of what is finished in this step
        at_end = torch.tensor([one.longest == length for one in going], device=device)
        log_p, ids = best_next(scorer, decoding, tokens, parents, beam, at_end)
        sums = (totals[..., None] + log_p).flatten(1)
        totals, chosen = sums.topk(min(beam, sums.shape[1]), sorted=True)
        parents, tokens = chosen // ids.shape[-1], ids.flatten(1).gather(1, chosen)
        before = prefixes.gather(1, parents[..., None].expand(-1, -1, length - 1))
        ended = (tokens == EOS) & (totals > -torch.inf)
        rows, places = ended.nonzero(as_tuple=True)
        for row, total, own in zip(
            rows.tolist(), totals[ended].tolist(), before[rows, places].tolist(), strict=True
        ):
            going[row].finish(own, total)
        totals = totals.masked_fill(ended, -torch.inf)
        prefixes = torch.cat([before, tokens[..., None]], 2)
        left = [
            row for row, best in enumerate(totals.amax(1).tolist()) if not going[row].is_done(best)
        ]
        if len(left) < len(going):
            if not left:
                break
            going = [going[row] for row in left]
            kept = torch.tensor(left, device=device)
            tokens, parents, totals, prefixes = (
                tensor[kept] for tensor in (tokens, parents, totals, prefixes)
            )
            decoding.keep(kept)
    return [one.ranked() for one in beams]


def best_next(
    scorer: TranslationScorer,
    decoding: Decoding,
    tokens: Tensor,
    parents: Tensor,
    count: int,
    at_end: Tensor,
) -> tuple[Tensor, Tensor]:
    """The `count` most probable next ids behind each of the prefixes prolonged by `tokens` (B, K),
    fewer where there are fewer ids: their log p, float64 (B, K, count), and the ids; -inf of ids
    that no hypothesis has, and of all but the end where a source is `at_end`, bool (B,).
    """
    with autocast(scorer.device, scorer.precision):
        heads = scorer.lm.trunk.head(decoding.step(tokens, parents).flatten(0, 1))
    heads = heads.to(PRECISIONS[scorer.precision])
    ending = at_end.repeat_interleave(tokens.shape[1])
    # blocks: nothing as large as all prefixes by the vocabulary is taken
    rows = whole_rows(scorer.lm.size, scorer.device)
    found = []
    for some, last in zip(heads.split(rows), ending.split(rows), strict=True):
        log_p = scorer.output.distribution(some)
        log_p[:, NEVER] = -torch.inf
        end = log_p[:, EOS].clone()
        log_p.masked_fill_(last[:, None], -torch.inf)
        log_p[:, EOS] = end
        found.append(log_p.topk(min(count, log_p.shape[1]), sorted=True))  # NaN is before all
    best, ids = (torch.cat(parts).view(*tokens.shape, -1) for parts in zip(*found, strict=True))
    if best.isnan().any():
        raise UserError(
            f"{scorer.signature['lm']}: gives a token the probability NaN; the model is damaged,"
            " train it again"
        )
    return best.double(), ids
