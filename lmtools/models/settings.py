"""Settings of a training, declared once; conf/*.yaml, `key=value` and a model directory's
config.yaml derive from them.
"""

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from lmtools.base.config import LATE, build, check_choices, check_numbers
from lmtools.base.errors import UserError
from lmtools.base.grammar import Count, Positive, Share
from lmtools.models import MODELS
from lmtools.models.objectives import OBJECTIVES
from lmtools.models.outputs import CRITERIA


@dataclass(frozen=True)
class Optim:
    """The optimiser and its learning rate: linear warm-up over `warmup` steps, then `decay`.

    `linear` goes to 0 at the last step, `inverse-root` falls by the root of warmup / step, `none`
    stays, `plateau` is multiplied by `shrink` after each validation that is not better than the
    best before.
    """

    name: str = "adam"
    lr: float = 1e-4
    betas: tuple[Share, Share] = (0.9, 0.999)  # of adam
    eps: Positive = 1e-6  # of adam
    momentum: Share = 0.99  # of nag
    # decoupled; not on biases and LayerNorm, nor on matrices with sparse gradients
    weight_decay: float = 0.01
    # update only the rows of embedding and output matrix in use; None: with sampled criteria
    sparse: bool | None = None
    warmup: int = 50_000
    decay: str = "linear"
    shrink: Annotated[float, Meta(gt=0, lt=1)] = 0.5  # of plateau
    min_lr: float = 0.0  # of plateau: training ends when the learning rate falls below it
    clip: float = 1.0  # of the gradient's norm; 0: none

    def __post_init__(self):
        check_numbers(self, "optim.")
        if self.lr * self.weight_decay >= 1:
            raise UserError(
                f"optim.weight_decay: {self.weight_decay} times optim.lr {self.lr} takes all of the"
                " weights at each step; give less, as 0.01"
            )
        if self.decay == "plateau" and 0 < self.lr <= self.min_lr:
            raise UserError(
                f"optim.min_lr: {self.min_lr} is not below optim.lr {self.lr}, and training would"
                " end at the first validation; give less"
            )


@dataclass(frozen=True)
class Batch:
    """The size of a batch over all processes: sentences, or tokens with padding."""

    sentences: Count | None = None
    tokens: Count | None = None
    # of models that older versions trained, which load; no training takes them any more
    streams: int | None = None
    unroll: int | None = None

    def __post_init__(self):
        if sum(size is not None for size in (self.sentences, self.tokens, self.streams)) != 1:
            raise UserError(
                "batch: give either batch.sentences or batch.tokens (set the other to null)"
            )
        check_numbers(self, "batch.")


@dataclass(frozen=True)
class Freeze:
    """Weights from `--init` that stay; a tied matrix stays if either of its users does."""

    embedding: bool = False  # all below the layers
    layers: int = 0  # the first so many
    output: bool = False  # matrix and biases

    def __post_init__(self):
        check_numbers(self, "freeze.")


LIST_LOSSES = ("mwer",)


@dataclass(frozen=True)
class Lists:
    """Training from N-best lists with references (lmtools.train.lists) in place of text.

    A hypothesis has the sum of its first-pass scores, times `weights` by name (`words`: its
    number of words), and of the model's score times `scale`.
    """

    loss: str | None = None  # None: training from text
    # None: the lists' `total`, where all hypotheses have one, else their `am`
    weights: dict[str, float] | None = None
    scale: Positive = 1.0
    # hypotheses of a list that a step sees, the best among them; None: all
    sample: Annotated[int, Meta(ge=2)] | None = None
    # table of heard, said and count, by which references are corrupted: each step sees such a list
    # too, without first-pass scores, for each list
    confusions: str | None = None

    def __post_init__(self):
        if self.loss is not None:
            check_choices(self, "lists.", loss=LIST_LOSSES)
        check_numbers(self, "lists.")


@dataclass(frozen=True)
class Settings:
    """One training: which model learns which objective by which criterion, and for how long."""

    model: str
    objective: str
    criterion: str = "softmax"
    arch: dict = field(default_factory=dict)
    output: dict = field(default_factory=dict)  # of the criterion: its noise, samples, cutoffs ...
    optim: Optim = Optim()
    batch: Batch = Batch(sentences=64)
    # batches that make one step, whose gradients are summed one batch after the other: a step of
    # accumulate x batch that needs the memory of one batch
    accumulate: Count = field(default=1, metadata=LATE)
    epochs: Count = 10
    steps: Count | None = None  # overrides epochs
    seed: Annotated[int, Meta(ge=0, lt=2**63)] = 1
    # auto, float32, bfloat16: of matrix products; weights and sums are float32
    precision: str = "auto"
    valid_every: Count | None = None  # steps; None: once an epoch
    patience: Count | None = None  # validations without a better loss before training stops
    # perplexity of validation that an epoch has to gain on the one before, or training stops
    # (converged as in Table 1 of Subword ELMo: 1.0); None: `epochs` or `steps` alone decide
    min_gain: float | None = None
    keep_epochs: tuple[Count, ...] = ()  # after which the best weights so far are copied to epoch-N
    log_every: Count = 100
    checkpoint_every: Count = 1000
    # words of a two-way model are cut anew each time, a cut with a chance in proportion to its
    # probability under the unigram pieces to this power (Kudo 2018); None: always the best cut
    cut_alpha: float | None = field(default=None, metadata=LATE)
    freeze: Freeze = field(default=Freeze(), metadata=LATE)
    lists: Lists = field(default=Lists(), metadata=LATE)

    def __post_init__(self):
        check_choices(self, "", model=MODELS, objective=OBJECTIVES, criterion=CRITERIA)
        check_numbers(self, "")
        self.check_lists()
        if (able := MODELS[self.model].objective) != self.objective:
            raise UserError(
                f"objective: {self.objective} does not go with model {self.model}, which learns"
                f" {able} alone; give objective={able}"
            )
        if self.steps is None and max(self.keep_epochs, default=0) > self.epochs:
            raise UserError(
                f"keep_epochs: {list(self.keep_epochs)} is beyond epochs {self.epochs}; give fewer,"
                " or more epochs"
            )

    def check_lists(self):
        """Raise UserError for what training from lists cannot do."""
        if self.lists.loss and self.objective in ("two-way", "translation"):
            raise UserError(
                f"lists.loss: not for objective {self.objective}; take a model of objective causal,"
                " autoencoding or masked"
            )

    @property
    def step_batch(self) -> Batch:
        """Return the size of what makes a step."""
        sizes = {name: size and size * self.accumulate for name, size in vars(self.batch).items()}
        return Batch(**sizes)

    @property
    def architecture(self):
        return build(MODELS[self.model].Config, self.arch, prefix="arch.")

    @property
    def output_layer(self):
        return build(CRITERIA[self.criterion].Config, self.output, prefix="output.")

    @property
    def sparse(self) -> bool:
        """Return whether gradients are sparse where they can be; momentum (nag) moves every row."""
        if self.optim.sparse is None:
            return CRITERIA[self.criterion].sampled and self.optim.name != "nag"
        return self.optim.sparse

    @property
    def partial(self) -> bool:
        """Return whether a part of the weights stays as another model has it."""
        return self.freeze != Freeze()
