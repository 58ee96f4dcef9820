"""Output layers with their training criteria: `forward(states, targets) -> (sum, count)` and `log_prob(states, targets)`.

`unnormalised(states, targets)` is log p up to normalisation and `log_normaliser(states)` what is missing.
"""

from lmtools.outputs.adaptive import Adaptive
from lmtools.outputs.full import FULL
from lmtools.outputs.sampled import SAMPLED
from lmtools.outputs.softmax import Softmax

CRITERIA = {"softmax": Softmax}
LARGE_VOCABULARY = {**FULL, **SAMPLED, "adaptive": Adaptive}  # their constructors take more than a weight: no settings for them yet
