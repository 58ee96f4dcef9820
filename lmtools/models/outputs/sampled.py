"""Sampled training criteria (Gao et al. 2021, On Sampling-Based Training Criteria for Neural
Language Modeling) and their posteriors.

A noise set S of about K ids, drawn anew for each step and shared by its targets, stands for the sum
over the vocabulary. E(c) is the expected count of c in S (K q(c) with replacement; the paper writes
K D(c) with D = q). With z the raw output and t the target:

BCE  -log s(u_t) - sum over S of w(c) log(1 - s(u_c)), s the logistic function.
     Accidental hits stay: in the mean S holds E(c) of every id whatever the target is, the expected
     loss of a context is
     -sum_c [p(c) log s(u_c) + w(c) E(c) log(1 - s(u_c))], and its minimum has exp(u_c) = p(c) /
     (w(c) E(c)) exactly, for any K.
CE   -u_t + log(exp(u_t) + sum over S of exp(u_c)). The target stands in the sum (without it the
loss has no lower bound).
     Hits stay where S was drawn with replacement: given the K + 1 ids in any order, which of them
     is the target has the posterior ~ p(c) / q(c), so exp(u_c) ~ p(c) / E(c) for any K. They are
     removed where S is distinct: given the union of S and the target, were ids drawn independently,
     which of them is the target has the posterior ~ p(c) / E(c), whether it was in S too or not.

| criterion | u_c                 | w(c)     | log p(c), up to normalisation  |
|-----------|---------------------|----------|--------------------------------|
| BCE-MCS   | z                   | 1        | z + log E(c)                   |
| BCE-IS    | z                   | 1 / E(c) | z                              |
| BCE-CPS   | z                   | C / K    | z + log(C E(c) / K)            |
| BCE-NCE   | z - log E(c)        | 1        | z                              |
| CE-MCS    | z                   |          | z + log E(c)                   |
| CE-IS     | z - log E(c)        |          | z                              |
| CE-CPS    | z                   |          | z + log E(c)                   |
| CE-NCE    | log s(z - log E(c)) |          | log s(z - log E(c)) + log E(c) |

These are the optima of the paper's Eqs. 8-20; CE-NCE's are those of log h, where Eq. 22 has h
(CeNcePaper). Those of BCE are normalised (`unnormalised` is an estimate of log p), those of CE only
after normalisation.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.config import check_choices, check_numbers
from lmtools.models.outputs.base import make_matrix
from lmtools.models.outputs.corrected import ALL, NEVER, Corrected
from lmtools.models.outputs.noise import DRAWINGS, NOISES, Noise, Sampler, log_expected

# u of a removed hit: no share of a sum, and finite, so that a set of nothing but hits has a
# gradient
HIT = -1e30


@dataclass(frozen=True)
class SampledConfig:
    """Noise of a criterion: its distribution, the size of a set, the drawing."""

    noise: str = "log-uniform"  # over the ranks of frequency; or unigram, uniform
    # K, ids in a noise set; one set for all targets of a step
    samples: Annotated[int, Meta(ge=1, le=1 << 24)] = 8192
    # or distinct: K different ids; tries: as many draws as bring K different ids in the mean
    drawing: str = "replacement"
    power: float = 0.75  # of the counts, for unigram noise
    start: str = "noise"  # the posterior that training starts from; or zero: from biases of 0

    def __post_init__(self):
        check_numbers(self, "output.")
        check_choices(self, "output.", noise=NOISES, drawing=DRAWINGS, start=("noise", "zero"))


class NoiseSet(NamedTuple):
    """Ids `drawn` (S,) beside the targets (N,) of a step, and log E of the former."""

    targets: Tensor
    drawn: Tensor
    expected: Tensor


class Sampled(Corrected):
    """Base of the sampled criteria: rows of the weight for the targets and one noise set, and
    nothing larger than (N, |S|).

    With `sparse` the gradient of `weight` is a sparse tensor of |S| + N rows (that of the bias, a
    vector, is dense). The output starts with the noise distribution as its posterior, as far as the
    states are 0. `noise` (V,), `tries` and `inflation`, the C / K of compensated partial summation,
    are saved with the weights: no correction needs the counts that the noise was made of. Ids that
    the noise excludes must not be targets; their posterior is 0.
    """

    Config = SampledConfig
    sampled = True
    corrected: ClassVar[bool] = False  # the noise is what corrects z to log p
    settings: ClassVar[tuple[str, ...]] = ()  # of the Config, that the loss reads

    @classmethod
    def create(cls, config, shared, width, targets, sparse):
        noise = NOISES[config.noise](targets.frequencies, targets.never, config.power)
        weight = make_matrix(targets.size, width) if shared is None else shared
        output = cls(weight, Sampler(noise, config.samples, config.drawing), sparse)
        if config.start == "zero":
            nn.init.zeros_(output.bias)
        vars(output).update({name: getattr(config, name) for name in cls.settings})
        return output

    def __init__(self, weight: nn.Parameter, sampler: Sampler, sparse: bool = False):
        super().__init__(weight)
        self.sampler, self.sparse = sampler, sparse
        self.register_buffer("noise", torch.tensor(sampler.noise.probability, dtype=torch.float32))
        self.register_buffer("tries", torch.tensor(sampler.tries))
        self.register_buffer("inflation", torch.tensor(sampler.noise.classes / sampler.count))
        with torch.no_grad():
            self.bias.copy_(self.start().masked_fill(self.noise == 0, 0.0))

    def correct_by(self, noise: Noise) -> None:
        """Correct z by the expected counts of another noise over the same ids, in as many draws."""
        self.noise.copy_(torch.from_numpy(noise.probability))

    def log_expected(self, ids: Tensor | slice = ALL) -> Tensor:
        """Return log E(c) of these ids, -inf for excluded ones."""
        return log_expected(self.noise[ids], self.tries, self.sampler.drawing)

    def before(self, ids=ALL):
        return torch.where(self.noise[ids] > 0, 0.0, -math.inf)

    def start(self) -> Tensor:
        """Return the bias that makes the noise distribution the posterior, (V,)."""
        return self.noise.log() - self.before()

    def training_loss(self, states, targets):
        drawn = self.sampler.draw(self.generator).to(targets.device, non_blocking=True)
        return self.loss(states, targets, drawn)

    def loss(self, states: Tensor, targets: Tensor, drawn: Tensor) -> Tensor:
        """Return the summed loss for the noise set `drawn` (S,)."""
        positive, rival = self.outputs(states, targets, drawn)
        noise_set = NoiseSet(targets, drawn, self.log_expected(drawn))
        positive = self.score(positive, self.log_expected(targets))
        return self.criterion(positive, self.score(rival, noise_set.expected), noise_set)

    def outputs(self, states: Tensor, targets: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """Return z of the targets (N,) and of the noise set (N, S), at least float32."""
        ids = torch.cat([targets, drawn])
        rows, bias = F.embedding(ids, self.weight, sparse=self.sparse), self.bias[ids]
        n = len(targets)
        positive = (states.to(bias.dtype) * rows[:n]).sum(-1) + bias[:n]
        return positive, (states @ rows[n:].T.to(states.dtype)).to(bias.dtype) + bias[n:]

    def score(self, z: Tensor, expected: Tensor) -> Tensor:
        """Return u of the table, from z and log E."""
        return z

    def criterion(self, positive: Tensor, rival: Tensor, noise_set: NoiseSet) -> Tensor:
        """Return the summed loss of u of the targets (N,) and of the noise set (N, S)."""
        raise NotImplementedError


class SampledBce(Sampled):
    """Binary cross entropy, accidental hits kept."""

    def criterion(self, positive, rival, noise_set):
        return F.softplus(-positive).sum() + self.rivals(F.softplus(rival), noise_set.expected)

    def rivals(self, losses: Tensor, expected: Tensor) -> Tensor:
        """Return the weighted sum of -log(1 - s(u)) (N, S)."""
        return losses.sum()


class BceMcs(SampledBce):
    """Monte Carlo sampling (Eqs. 7 and 8): log p = z + log E(c)."""

    corrected = True

    def before(self, ids=ALL):
        return self.log_expected(ids)


class BceIs(SampledBce):
    """Importance sampling (Eqs. 11 and 12): log p = z, normalised by itself."""

    def rivals(self, losses, expected):
        return losses.sum(0) @ torch.exp(-expected)


class BceCps(SampledBce):
    """Compensated partial summation (Eqs. 15 and 16): log p = z + log(C E(c) / K)."""

    corrected = True

    def rivals(self, losses, expected):
        return self.inflation * losses.sum()

    def before(self, ids=ALL):
        return self.log_expected(ids) + self.inflation.log()


class BceNce(SampledBce):
    """Noise contrastive estimation (Eqs. 19 and 20) with q = exp(z): log p = z, normalised by
    itself.
    """

    def score(self, z, expected):
        return z - expected


@dataclass(frozen=True)
class SampledCeConfig(SampledConfig):
    """Noise of a cross entropy, and the ids that are summed."""

    # false: the noise set alone, as Eqs. 9, 13, 17 and 21 print it; no minimum then where a sure
    # word is seldom drawn. The mini corpus of egs/librispeech: CE-MCS comes to a perplexity of 92.7
    # with the target in the sum; without, to 128 after an epoch, and diverges
    target_in_sum: bool = True


class SampledCe(Sampled):
    """Cross entropy over the target and the noise set; accidental hits kept with replacement,
    removed from distinct sets. Without the target in the sum hits stay in any set.
    """

    Config = SampledCeConfig
    settings = ("target_in_sum",)
    target_in_sum = True

    def criterion(self, positive, rival, noise_set):
        if not self.target_in_sum:
            return (rival.logsumexp(-1) - positive).sum()
        if self.sampler.drawing != "replacement":
            rival = rival.masked_fill(noise_set.targets[:, None] == noise_set.drawn, HIT)
        return (torch.logaddexp(positive, rival.logsumexp(-1)) - positive).sum()


class CeMcs(SampledCe):
    """Monte Carlo sampling (Eqs. 9 and 10): log p = z + log E(c), then normalised."""

    corrected = True

    def before(self, ids=ALL):
        return self.log_expected(ids)


class CeIs(SampledCe):
    """Importance sampling (Eqs. 13 and 14), also known as sampled softmax: log p = z, then
    normalised. Eq. 13 does not divide the target's exp(z) by E(t): log E(t) less for each target, a
    constant.
    """

    def score(self, z, expected):
        return z - expected

    def criterion(self, positive, rival, noise_set):
        loss = super().criterion(positive, rival, noise_set)
        return loss if self.target_in_sum else loss - self.log_expected(noise_set.targets).sum()


@dataclass(frozen=True)
class CeCpsConfig(SampledCeConfig):
    """Noise, the ids that are summed, and those whose sum is compensated."""

    # what C / K multiplies: the sum, as Eq. 17 prints it, or of it the noise, not the target
    compensate: str = "sum"

    def __post_init__(self):
        super().__post_init__()
        check_choices(self, "output.", compensate=("sum", "noise"))


class CeCps(CeMcs):
    """Compensated partial summation (Eqs. 17 and 18): CE-MCS and a constant, log(C / K) for each
    target.

    With `compensate` noise the loss is -z_t + log(exp(z_t) + C / K sum over S of exp(z_c)), whose
    minimum is not the posterior: the odds of a word that the noise seldom draws come out up to C /
    K times too high.
    """

    Config = CeCpsConfig
    settings = ("target_in_sum", "compensate")
    compensate = "sum"

    def criterion(self, positive, rival, noise_set):
        if self.compensate == "noise":
            return super().criterion(positive, rival + self.inflation.log(), noise_set)
        loss = super().criterion(positive, rival, noise_set)
        return loss + len(noise_set.targets) * self.inflation.log()


class CeNce(SampledCe):
    """CE-NCE, log h: cross entropy of the NCE classifier's outputs h = s(z - log E(c)) = q / (q +
    E(c)), q = exp(z), with exp(u) = h. The paper prints exp(u) = exp(h) (CeNcePaper).

    In this form nothing overflows. Its optima are exp(u) = a(x) p(c|x) / E(c) for every a(x) that
    keeps exp(u) below 1: the posterior comes back by log p = u + log E(c), then normalised, while z
    alone is log p only as a(x) goes to 0. Where z is far above log E(c) the outputs are 1 and no
    gradient is left, so training needs a start below: the bias starts at the log of the noise, and
    u at -log K.
    """

    link = staticmethod(F.logsigmoid)

    def score(self, z, expected):
        return F.logsigmoid(z - expected)

    def start(self):
        return self.noise.log()

    def before(self, ids=ALL):
        return torch.where(self.noise[ids] > 0, -self.log_expected(ids), 0.0)

    def after(self, ids=ALL):
        return self.log_expected(ids).float().clamp(min=NEVER)


@dataclass(frozen=True)
class CeNcePaperConfig(SampledCeConfig):
    """Settings of Eq. 21 as printed."""

    target_in_sum: bool = False


class CeNcePaper(CeNce):
    """CE-NCE as Eqs. 21 and 22 print it: u = h = s(z - log E(c)) itself.

    As h lies between 0 and 1, the posterior E(c) exp(h) / sum changes the noise distribution by
    less than a factor of e from one id to another: it represents p(c|x) only where p(c|x) / q(c)
    varies that little within a context. Elsewhere the best that it can do is min(max(log(p / q) -
    a(x), 0), 1) as h, and z goes to infinity. Training starts from h = 1 / 2, the middle.
    """

    Config = CeNcePaperConfig
    target_in_sum = False
    link = staticmethod(torch.sigmoid)

    def score(self, z, expected):
        return torch.sigmoid(z - expected)

    def start(self):
        return self.log_expected()


SAMPLED = {
    "bce-mcs": BceMcs, "bce-is": BceIs, "bce-cps": BceCps, "bce-nce": BceNce,
    "ce-mcs": CeMcs, "ce-is": CeIs, "ce-cps": CeCps, "ce-nce": CeNce,
    "ce-nce-paper": CeNcePaper,
}  # fmt: skip
