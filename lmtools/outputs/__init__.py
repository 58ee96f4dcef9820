"""Output layers with their training criteria: `forward(states, targets) -> (sum, count)` and
`log_prob(states, targets)`.

`unnormalised(states, targets)` is log p up to normalisation, `log_normaliser(states)` what is
missing, `distribution(states)` log p of all ids. `create(config, shared, width, targets, sparse)`
makes one: `config` is the criterion's own Config, `shared` the input embedding that is the output
matrix too, or None, `width` that of the states; with `sparse` the matrix has sparse gradients where
the criterion does not touch all of it.
"""

from lmtools.outputs.adaptive import Adaptive
from lmtools.outputs.full import FULL
from lmtools.outputs.sampled import SAMPLED
from lmtools.outputs.softmax import Softmax
from lmtools.outputs.targets import Targets

CRITERIA = {"softmax": Softmax, **FULL, **SAMPLED, "adaptive": Adaptive}

__all__ = ["CRITERIA", "SAMPLED", "Softmax", "Targets"]
