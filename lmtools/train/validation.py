"""What a training measures of texts that it does not learn from."""

import math
from collections.abc import Callable

import numpy as np
import torch

from lmtools.models.checkpoint import Progress
from lmtools.models.device import autocast
from lmtools.models.lm import LanguageModel
from lmtools.train.batches import Sentences
from lmtools.train.directory import TrainingPlan
from lmtools.train.log import Log, NullLog
from lmtools.train.parallel import World

VALIDATION_SEED = 0  # the masked objective masks the same validation tokens every time
MOST = 709.0  # whose exponential a float can hold
# a training whose loss stays above this share of what frequencies alone give learns nothing (0.97
# where T-TA collapsed, 0.93 after as many steps where it began well); logged after BEGUN steps
BEGUN, HARDLY = 500, 0.96


class Validation:
    """The validation corpus, by whose loss weights are kept, and others (`guards`), whose losses
    are logged; `chance` is the loss of a model that knows the ids' frequencies alone.
    """

    def __init__(
        self, plan: TrainingPlan, lm: LanguageModel, world: World, feed: Callable, chance: float
    ):
        self.settings, self.device = plan.settings, plan.device
        self.lm, self.world, self.chance = lm, world, chance
        self.valid = feed(plan.valid)
        self.warned = False  # that nothing is learnt
        self.guards = {name: feed(corpus) for name, corpus in plan.also.items()}

    @torch.inference_mode()
    def loss(self, source: Sentences | None = None) -> float:
        """Return the mean loss in nats a target over the validation corpus, or another source."""
        valid = self.valid if source is None else source
        self.lm.eval()
        total, count = 0.0, 0
        generator = np.random.default_rng(VALIDATION_SEED)
        for step in range(valid.per_epoch):
            for part, n in valid.parts(self.lm, valid.at(step), generator):
                with autocast(self.device, self.settings.precision):
                    total += float(valid.loss(self.lm, part, self.device))
                count += n
        return self.world.sum(total) / self.world.sum(count)

    def report(self, loss: float, progress: Progress, better: bool, log: Log | NullLog) -> None:
        """Log the validation loss, losses on other texts, and a training that learns no context."""
        optim = self.settings.optim
        line = f"{self.valid.measure} {loss:.4f}{' (best)' if better else ''}"
        former, values = progress.also, {"valid_loss": loss}
        others = {name: self.loss(guard) for name, guard in self.guards.items()}
        progress.also = {}  # of a text that is no longer asked for nothing is known
        for name, other in others.items():
            first, at_best = former.get(name, (other, other))
            progress.also[name] = first, (other if better else at_best)
            line += f"; {name} {other:.4f}, perplexity {perplexity(other):.2f}"
            line += f" ({perplexity(first):.2f} at first)"
        values |= {"also": others} if others else {}
        log.metrics(line, step=progress.step, tokens=progress.tokens, **values)
        if progress.step >= max(BEGUN, 2 * optim.warmup) and loss > HARDLY * self.chance:
            log.say(
                f"warning: a validation loss of {loss:.2f} is little below {self.chance:.2f}, what"
                " tokens' frequencies alone give: the model does not learn from context; lower"
                " optim.lr or lengthen optim.warmup"
            )
            self.warned = True

    def warn_idle(self, progress: Progress, log: Log | NullLog) -> None:
        """Warn, once at the end, where no validation shows that anything was learnt."""
        best = progress.best or 0.0
        if progress.best_step == 0 < progress.step:
            log.say("warning: no validation was better than that of the weights it started from")
        elif best >= self.chance and not self.warned:
            log.say(
                f"warning: a validation loss of {best:.2f} at best is not below {self.chance:.2f},"
                f" what tokens' frequencies alone give: after {progress.step:,} steps the model has"
                " learnt nothing from context; train longer, raise optim.lr or lower optim.warmup"
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
