"""A neural language model: a trunk that makes states, an objective that chooses their targets, an
output layer that predicts these.
"""

import numpy as np
from torch import Tensor, nn

from lmtools.base.errors import UserError
from lmtools.models import MODELS
from lmtools.models.objectives import OBJECTIVES, Examples, TwoWay, excluded_ids
from lmtools.models.outputs import CRITERIA, Targets
from lmtools.models.settings import Settings
from lmtools.text.subword import MASK
from lmtools.text.subword.spelled import WordTargets


class LanguageModel(nn.Module):
    """Trunk and output layer of `settings` over a vocabulary of `size` ids, or of what spelled ones
    predict (`words`).

    `counts` (outputs,) are those of each id as a target in training; None: weights are loaded
    afterwards, or all ids are alike.
    """

    def __init__(
        self,
        settings: Settings,
        size: int,
        counts: np.ndarray | None = None,
        words: WordTargets | None = None,
    ):
        super().__init__()
        self.settings, self.size = settings, size
        self.objective = OBJECTIVES[settings.objective](words)
        self.trunk = MODELS[settings.model](settings.architecture, size)
        if self.longest < 1:
            raise UserError(
                f"arch.positions: {self.trunk.positions} leave no room beside"
                f" {self.objective.boundary} boundary tokens; give the longest sentence's and these"
            )
        targets = Targets(
            words.size if self.two_way else size, excluded_ids(self.objective), counts
        )
        self.output = CRITERIA[settings.criterion].create(
            settings.output_layer,
            shared=self.trunk.shared,
            width=self.trunk.width,
            targets=targets,
            sparse=settings.sparse,
        )
        self.trunk.lookup.sparse = settings.sparse

    @property
    def two_way(self) -> bool:
        """Return whether the model reads spelled words and predicts each from either side."""
        return isinstance(self.objective, TwoWay)

    @property
    def shares(self) -> bool:
        """Return whether the input embedding is the output matrix too."""
        return self.trunk.shared is not None and self.output.weight is self.trunk.shared

    def sparse_parameters(self) -> list[nn.Parameter]:
        """Return the matrices whose gradients are sparse: embedding and output matrix."""
        if not self.trunk.lookup.sparse:
            return []
        output = [self.output.weight] if self.output.sparse else []
        return output if self.shares else [self.trunk.lookup.weight, *output]

    @property
    def longest(self) -> int:
        """Return the most tokens, boundary tokens apart, of a sentence that fits the positions."""
        return self.trunk.positions - self.objective.boundary

    def forward(self, examples: Examples) -> tuple[Tensor, int]:
        """Return the summed loss of the examples and their number; divide once, at the end."""
        return self.output(self.trunk.head(self.states(examples)), examples.targets)

    def log_probs(self, examples: Examples) -> Tensor:
        """Return the score of each target (N,) of `objective.scoring`, with gradients."""
        states = self.predicting_states(examples, self.masked)
        return self.output.traced_log_prob(self.trunk.head(states), examples.targets)

    @property
    def masked(self) -> bool:
        """Return whether each token is scored in a pass of its own, in which it is masked."""
        return self.trunk.masks

    def predicting_states(self, examples: Examples, masked: bool) -> Tensor:
        """Return the states (N, D) that predict the targets, each masked or all as they are."""
        if not masked:
            return self.states(examples)
        layers = self.trunk.masked_layers(*examples.read, MASK, [self.trunk.depth])
        return next(layers)[1].flatten(0, 1)[examples.rows]

    def states(self, examples: Examples) -> Tensor:
        """Return the states (N, D) that predict the targets."""
        return self.trunk.hidden(*examples.read).flatten(0, 1)[examples.rows]
