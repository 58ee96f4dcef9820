"""A corpus as streams of text that are read side by side, each step with the state that the step
before left; and what a training measures of texts that it does not learn from.
"""

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from lmtools.base.errors import UserError
from lmtools.models.checkpoint import Progress
from lmtools.models.device import autocast
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import make_examples
from lmtools.models.settings import Batch
from lmtools.text.corpus import Corpus, CorpusFile
from lmtools.text.subword import BOS, EOS, PAD
from lmtools.train.batches import Sentences
from lmtools.train.directory import TrainingPlan
from lmtools.train.log import Log, NullLog
from lmtools.train.parallel import World

VALIDATION_SEED = 0  # the masked objective masks the same validation tokens every time
MOST = 709.0  # whose exponential a float can hold
# a training whose loss stays above this share of what frequencies alone give learns nothing (0.97
# where T-TA collapsed, 0.93 after as many steps where it began well); logged after BEGUN steps
BEGUN, HARDLY = 500, 0.96


class Streams:
    """Truncated back-propagation through time: S streams, T positions a step, gradients within a
    step only (Williams and Peng 1990). An epoch cuts the line of positions into S pieces from a
    starting point drawn for it (`seed` None: the beginning); every position is predicted once. A
    process has every `world.size`-th stream.
    """

    def __init__(self, corpus: Corpus, batch: Batch, seed: int | None, world: World):
        if batch.streams % world.size:
            raise UserError(
                f"batch.streams: {batch.streams} cannot be shared by {world.size} processes; give a"
                " multiple of that"
            )
        self.corpus, self.batch, self.seed, self.world = corpus, batch, seed, world
        sizes = [(len(shard), shard.tokens + len(shard)) for shard in corpus.shards]
        # sentences and positions before each shard, and all of them
        self.before = np.cumsum([(0, 0), *sizes], axis=0)
        self.positions = corpus.tokens + len(corpus)
        # of a stream; the last ones may be shorter
        self.length = -(-self.positions // batch.streams)
        self.per_epoch = -(-self.length // batch.unroll)
        self.state: list[Tensor] | None = None

    def at(self, step: int) -> tuple[int, int]:
        """Return the epoch and the place in it of a step."""
        return divmod(step, self.per_epoch)

    def span(self, batch: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Return first position and end (S,) of each stream's part in a step."""
        epoch, place = batch
        start = 0
        if self.seed is not None:
            start = int(np.random.default_rng([self.seed, epoch]).integers(self.positions))
        stream = np.arange(self.batch.streams) * self.length
        first = np.minimum(stream + place * self.batch.unroll, self.positions)
        end = np.minimum(first + self.batch.unroll, stream + self.length)
        end = np.minimum(end, self.positions)
        return start + first, start + np.maximum(first, end)

    def sentence(self, positions: np.ndarray) -> np.ndarray:
        """Return the sentence of each position, of the shape of `positions`."""
        sentence = np.zeros_like(positions)
        for number, here, within in self.by_shard(positions):
            sentence[here] = self.before[number, 0] + bisect(self.corpus.shards[number], within)
        return sentence

    def by_shard(self, positions: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield the number of each shard of `positions`, which of them lie there, and where."""
        shards = np.searchsorted(self.before[1:, 1], positions, side="right")
        for number in np.unique(shards).tolist():
            here = shards == number
            yield number, here, positions[here] - self.before[number, 1]

    def read(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the input and the target at each position, int64 of the shape of `positions`."""
        inputs, targets = np.zeros_like(positions), np.zeros_like(positions)
        for number, here, within in self.by_shard(positions):
            inputs[here], targets[here] = read_positions(self.corpus.shards[number], within)
        return inputs, targets

    def tokens(self, batch: tuple[int, int]) -> int:
        """Return the number of tokens (EOS not counted) that are predicted in a step."""
        turns, rest = np.divmod(np.stack(self.span(batch)), self.positions)
        # tokens before each position
        before = turns * self.corpus.tokens + rest - self.sentence(rest)
        return int((before[1] - before[0]).sum())

    def loss(
        self,
        lm: LanguageModel,
        batch: tuple[int, int],
        generator: np.random.Generator,
        device: torch.device,
    ) -> tuple[Tensor, int]:
        """Return the summed loss of this process's streams, and its targets; the state goes on."""
        first, end = (bound[self.world.rank :: self.world.size, None] for bound in self.span(batch))
        places = first + np.arange(self.batch.unroll)  # (streams, T)
        inputs, targets = self.read(places % self.positions)
        within = places < end
        examples = make_examples(
            np.where(within, inputs, PAD), (end - first)[:, 0], within, targets
        ).to(device)
        states, after = lm.trunk.carried(examples.inputs, self.state if batch[1] else None)
        self.state = [state.detach().float() for state in after]
        if not len(examples.targets):
            return torch.zeros((), device=device), 0
        return lm.output(lm.trunk.head(states.flatten(0, 1)[examples.rows]), examples.targets)

    def carried_state(self) -> dict[str, Tensor]:
        """Return the state of all streams for a checkpoint; every process has to ask for it."""
        return {
            str(number): self.world.interleave(state)
            for number, state in enumerate(self.state or [])
        }

    def resume(self, saved: Mapping[str, Tensor], device: torch.device) -> None:
        share = slice(self.world.rank, None, self.world.size)
        self.state = [saved[str(number)][share].to(device) for number in range(len(saved))] or None

    def place(self, step: int) -> str:
        first, _ = self.span(self.at(step))
        lines = ", ".join(str(line + 1) for line in self.sentence(first % self.positions)[:8])
        return f"streams at sentences {lines}{' ...' if len(first) > 8 else ''}"


def bisect(corpus: CorpusFile, positions: np.ndarray) -> np.ndarray:
    """Find the sentence of each position in a file: position offsets[i] + i is the first of i."""
    low, high = np.zeros_like(positions), np.full_like(positions, len(corpus))
    while (high - low).max(initial=0) > 1:
        middle = (low + high) // 2
        right = corpus.offsets[middle] + middle <= positions
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return low


def read_positions(corpus: CorpusFile, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sentence, ids, offsets = bisect(corpus, positions), corpus.ids, corpus.offsets
    token = positions - sentence  # that is predicted; EOS where the sentence has no more
    read, gold = ids[np.maximum(token - 1, 0)], ids[np.minimum(token, len(ids) - 1)]
    inputs = np.where(token == offsets[sentence], BOS, read)
    targets = np.where(token == offsets[sentence + 1], EOS, gold)
    return inputs.astype(np.int64), targets.astype(np.int64)


class Validation:
    """The validation corpus, by whose loss weights are kept, and others (`guards`), whose losses
    are logged; `chance` is the loss of a model that knows the ids' frequencies alone.
    """

    def __init__(
        self, plan: TrainingPlan, lm: LanguageModel, world: World, feed: Callable, chance: float
    ):
        self.settings, self.device = plan.settings, plan.device
        self.lm, self.world, self.chance = lm, world, chance
        self.valid = feed(plan.valid, None)
        self.guards = {name: feed(corpus, None) for name, corpus in plan.also.items()}

    @torch.inference_mode()
    def loss(self, source: Sentences | Streams | None = None) -> float:
        """Return the mean loss in nats a target over the validation corpus, or another source."""
        valid = self.valid if source is None else source
        self.lm.eval()
        total, count = 0.0, 0
        generator = np.random.default_rng(VALIDATION_SEED)
        for step in range(valid.per_epoch):
            with autocast(self.device, self.settings.precision):
                loss, n = valid.loss(self.lm, valid.at(step), generator, self.device)
            total, count = total + float(loss), count + n
        return self.world.sum(total) / self.world.sum(count)

    def report(self, loss: float, progress: Progress, better: bool, log: Log | NullLog) -> None:
        """Log the validation loss, losses on other texts, and a training that learns no context."""
        optim = self.settings.optim
        line, former = f"validation loss {loss:.4f}{' (best)' if better else ''}", progress.also
        others = {name: self.loss(guard) for name, guard in self.guards.items()}
        progress.also = {}  # of a text that is no longer asked for nothing is known
        for name, other in others.items():
            first, at_best = former.get(name, (other, other))
            progress.also[name] = first, (other if better else at_best)
            line += f"; {name} {other:.4f}, perplexity {perplexity(other):.2f}"
            line += f" ({perplexity(first):.2f} at first)"
        values = {"valid_loss": loss} | ({"also": others} if others else {})
        log.metrics(line, step=progress.step, tokens=progress.tokens, **values)
        if progress.step >= max(BEGUN, 2 * optim.warmup) and loss > HARDLY * self.chance:
            log.say(
                f"a validation loss of {loss:.2f} is little below {self.chance:.2f}, what tokens'"
                " frequencies alone give: the model does not learn from context; lower optim.lr or"
                " lengthen optim.warmup"
            )

    def converged(
        self, loss: float, progress: Progress, epoch: int | None, log: Log | NullLog
    ) -> bool:
        """Return whether `epoch` (None: none) ended and gained less than `min_gain` perplexity."""
        least, before = self.settings.min_gain, progress.epoch_loss
        if least is None or epoch is None:
            return False
        progress.epoch_loss = loss
        gain = math.inf if before is None else perplexity(before) - perplexity(loss)
        if gain < least:
            log.say(f"converged: epoch {epoch} gained {gain:.2f} perplexity")
        return gain < least


def perplexity(loss: float) -> float:
    """Return exp of a loss; of a loss whose exponential no float can hold, the largest."""
    return math.exp(min(loss, MOST))


def entropy(counts: np.ndarray) -> float:
    """Return the entropy of ids that are drawn by their counts, nats an id."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())
