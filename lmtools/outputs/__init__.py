"""Output layers with their training criteria: `forward(states, targets) -> (sum, count)` and `log_prob(states, targets)`."""

from lmtools.outputs.softmax import Softmax

CRITERIA = {"softmax": Softmax}
