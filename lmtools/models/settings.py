"""Settings of a training, declared once; conf/*.yaml, `key=value` and a model directory's
config.yaml derive from them.
"""

from dataclasses import dataclass, field

from lmtools.base.config import LATE, build, check_choices, check_numbers
from lmtools.base.errors import UserError
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
    betas: tuple[float, ...] = (0.9, 0.999)  # of adam
    eps: float = 1e-6  # of adam
    momentum: float = 0.99  # of nag
    # decoupled; not on biases and LayerNorm, nor on matrices with sparse gradients
    weight_decay: float = 0.01
    # update only the rows of embedding and output matrix in use; None: with sampled criteria
    sparse: bool | None = None
    warmup: int = 50_000
    decay: str = "linear"
    shrink: float = 0.5  # of plateau
    min_lr: float = 0.0  # of plateau: training ends when the learning rate falls below it
    clip: float = 1.0  # of the gradient's norm; 0: none

    def __post_init__(self):
        check_numbers(self, "optim.")
        for name in ("momentum", "shrink"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(
                    f"optim.{name}: {getattr(self, name)} is not from 0 to below 1; give such a"
                    " number"
                )


@dataclass(frozen=True)
class Batch:
    """The size of a batch over all processes: sentences, or tokens with padding."""

    sentences: int | None = None
    tokens: int | None = None
    # of models that older versions trained, which load; no training takes them any more
    streams: int | None = None
    unroll: int | None = None

    def __post_init__(self):
        if sum(size is not None for size in (self.sentences, self.tokens, self.streams)) != 1:
            raise UserError(
                "batch: give either batch.sentences or batch.tokens (set the other to null)"
            )
        check_numbers(self, "batch.", "sentences", "tokens")


@dataclass(frozen=True)
class Freeze:
    """Weights from `--init` that stay; a tied matrix stays if either of its users does."""

    embedding: bool = False  # all below the layers
    layers: int = 0  # the first so many
    output: bool = False  # matrix and biases

    def __post_init__(self):
        check_numbers(self, "freeze.")


@dataclass(frozen=True)
class LowRankUpdates:
    """Low-rank updates (LoRA, Hu et al. 2022) in place of all else: each matrix above the embedding
    is what `--init` gives plus alpha / rank * B A, with B of `rank` columns.
    """

    rank: int = 0  # 0: every weight is trained
    alpha: float = 16.0
    embeddings: bool = False  # embedding and output layer are trained too, as they are
    # of --init hf:DIR: last names of the linear layers that have updates, as q_proj; (): all
    targets: tuple[str, ...] = field(default=(), metadata=LATE)

    def __post_init__(self):
        check_numbers(self, "lora.")


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
    scale: float = 1.0
    sample: int | None = None  # hypotheses of a list that a step sees, the best among them; all
    # table of heard, said and count, by which references are corrupted: each step sees such a list
    # too, without first-pass scores, for each list
    confusions: str | None = None

    def __post_init__(self):
        if self.loss is not None:
            check_choices(self, "lists.", loss=LIST_LOSSES)
        check_numbers(self, "lists.")
        if self.sample is not None and self.sample < 2:
            raise UserError(f"lists.sample: {self.sample} is too small; give at least 2")


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
    epochs: int = 10
    steps: int | None = None  # overrides epochs
    seed: int = 1
    # auto, float32, bfloat16: of matrix products; weights and sums are float32
    precision: str = "auto"
    valid_every: int | None = None  # steps; None: once an epoch
    patience: int | None = None  # validations without a better loss before training stops
    # perplexity of validation that an epoch has to gain on the one before, or training stops
    # (converged as in Table 1 of Subword ELMo: 1.0); None: `epochs` or `steps` alone decide
    min_gain: float | None = None
    keep_epochs: tuple[int, ...] = ()  # after which the best weights so far are copied to epoch-N
    log_every: int = 100
    checkpoint_every: int = 1000
    # words of a two-way model are cut anew each time, a cut with a chance in proportion to its
    # probability under the unigram pieces to this power (Kudo 2018); None: always the best cut
    cut_alpha: float | None = field(default=None, metadata=LATE)
    freeze: Freeze = field(default=Freeze(), metadata=LATE)
    lora: LowRankUpdates = field(default=LowRankUpdates(), metadata=LATE)
    lists: Lists = field(default=Lists(), metadata=LATE)

    def __post_init__(self):
        check_choices(self, "", model=MODELS, objective=OBJECTIVES, criterion=CRITERIA)
        sizes = ("epochs", "steps", "valid_every", "patience", "log_every", "checkpoint_every")
        check_numbers(self, "", *sizes)
        self.check_lists()
        if any(epoch < 1 for epoch in self.keep_epochs):
            raise UserError(
                f"keep_epochs: {list(self.keep_epochs)} has numbers below 1; epochs count from 1"
            )
        if self.seed >= 2**63:
            raise UserError(f"seed: {self.seed} is too large; give one below 2^63")

    def check_lists(self):
        """Raise UserError for what training from lists cannot do."""
        if self.lists.loss and self.objective in ("two-way", "translation"):
            raise UserError(
                f"lists.loss: not for objective {self.objective}; take a model of objective causal,"
                " autoencoding or masked"
            )

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
        return self.freeze != Freeze() or self.lora.rank > 0
