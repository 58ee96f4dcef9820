"""What families and criteria declare is so."""

import inspect

import numpy as np
import pytest
import torch

from lmtools.base.errors import UserError
from lmtools.models import MODELS
from lmtools.models.base import Trunk
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import OBJECTIVES
from lmtools.models.outputs import CRITERIA, OutputLayer
from lmtools.models.settings import Settings
from lmtools.text.subword import BOS

ONE_WAY = [name for name in MODELS if name not in ("elmo", "seq2seq")]
SAMPLES = {"samples": 5}
ARCH = {
    "lstm": {"layers": 2, "dim": 16, "units": 16},
    "gcnn": {"dim": 16, "blocks": ["[4, 16] x 2"]},
}
OUTPUT = {"adaptive": {"cutoffs": [10]}}


def model(name: str, criterion: str = "softmax", **changes) -> LanguageModel:
    kind = MODELS[name]
    output = OUTPUT.get(criterion, SAMPLES if CRITERIA[criterion].sampled else {})
    arch = ARCH.get(name, {"layers": 2, "dim": 16})
    return LanguageModel(Settings(name, kind.objective, criterion, arch, output, **changes), 40)


@pytest.mark.parametrize("name", MODELS)
def test_families_declare_all_of_a_trunk(name):
    kind = MODELS[name]
    assert issubclass(kind, Trunk) and not inspect.isabstract(kind)
    for objective in OBJECTIVES.keys() - {kind.objective}:  # by it the model sees what it predicts
        with pytest.raises(UserError, match=f"does not go .* give objective={kind.objective}"):
            Settings(name, objective)
    assert kind.masks == (kind.masked_states is not Trunk.masked_states)
    titles = [other.title for other in MODELS.values()]
    assert titles.count(kind.title) == 1


@pytest.mark.parametrize("name", ONE_WAY)
def test_sizes_widths_and_depths_are_those_of_the_states(name):
    trunk = model(name).trunk.eval()
    read = torch.randint(5, 40, (2, 6)), torch.tensor([6, 6])
    states = list(trunk.layer_states(*read))
    assert trunk.depth == 2 == len(states) - 1
    torch.testing.assert_close(trunk.hidden(*read), states[-1])
    assert trunk.head(states[-1][0]).shape == (6, trunk.width)
    assert trunk.lookup.num_embeddings == 40 and trunk.positions >= 6
    assert trunk.shared is (trunk.lookup.weight if trunk.tied else None)


@pytest.mark.parametrize("name", ONE_WAY)
def test_only_left_to_right_families_have_a_memory_of_prefixes(name):
    trunk = model(name).trunk.eval()
    if trunk.objective != "causal":
        with pytest.raises(UserError, match="reads both sides of a word"):
            trunk.memory()
        return
    with torch.inference_mode():
        grown = trunk.memory().grow(np.array([-1, 0]), np.array([BOS, 7]))
        whole = trunk.hidden(torch.tensor([[BOS, 7]]), torch.tensor([2]))[0]
    torch.testing.assert_close(grown, whole)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_criteria_declare_all_of_an_output_layer(criterion):
    lm = model("causal", criterion)
    assert isinstance(lm.output, OutputLayer)
    assert (lm.output.weight is None) == (criterion == "adaptive")
    assert lm.output.sparse == lm.output.sampled == lm.settings.sparse
    assert lm.shares == (criterion != "adaptive")
