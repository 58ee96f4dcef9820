"""The encoder-decoder: what its states depend on, and that it learns."""

import numpy as np
import pytest
import torch
from torch import nn

from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.text.subword import EOS, PAD

SIZE = 15


def model(norm: str = "post", layers: int = 2, **changes) -> LanguageModel:
    torch.manual_seed(0)
    arch = {"norm": norm, "layers": layers, "decoder_layers": 1, "dim": 32, "heads": 4, "ffn": 64}
    arch |= {"positions": 8, "dropout": 0.0} | changes
    return LanguageModel(Settings("seq2seq", "translation", arch=arch), SIZE)


@torch.no_grad()
def trunk_of(norm: str):
    """A trunk for evaluation, whose weights are large enough that attention changes states."""
    trunk = model(norm).trunk.eval()
    for parameter in trunk.parameters():
        parameter.mul_(3)
    return trunk


def read(tokens=7, sources=6):
    """Random target and source ids with their lengths."""
    pairs = (torch.randint(5, SIZE, (3, n)) for n in (tokens, sources))
    (target, source), lengths = pairs, torch.tensor([tokens, 3, 1])
    return target, lengths, source, torch.tensor([2, sources, 1])


def test_layers_and_what_is_shared():
    lm = model(layers=3)
    trunk = lm.trunk
    states = list(trunk.layer_states(*read()))
    assert [tuple(state.shape) for state in states] == [(3, 7, 32)] * 2
    assert trunk.depth == len(trunk.stack) == 4
    assert lm.output.weight is trunk.shared is trunk.lookup.weight
    assert sum(1 for part in trunk.modules() if isinstance(part, nn.Embedding)) == 2  # and places
    assert lm.longest == 7


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_padding_of_either_side_changes_no_state(norm):
    trunk = trunk_of(norm)
    tokens, lengths, sources, source_lengths = read()
    states = trunk.hidden(tokens, lengths, sources, source_lengths)
    for row in range(3):
        t, s = int(lengths[row]), int(source_lengths[row])
        alone = tokens[row : row + 1, :t], lengths[row : row + 1]
        alone = trunk.hidden(*alone, sources[row : row + 1, :s], source_lengths[row : row + 1])
        torch.testing.assert_close(states[row, :t], alone[0])
        other = sources.clone()
        other[row, s:] = PAD
        changed = trunk.hidden(tokens, lengths, other, source_lengths)
        assert torch.equal(states[row, :t], changed[row, :t])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_state_depends_on_all_of_the_source_and_on_no_later_token(norm):
    trunk = trunk_of(norm)
    tokens, lengths, sources, source_lengths = read()
    before = trunk.hidden(tokens, lengths, sources, source_lengths)
    for place in range(7):
        changed = tokens.clone()
        changed[0, place] = 5 + (changed[0, place] - 4) % 10
        after = trunk.hidden(changed, lengths, sources, source_lengths)
        assert torch.equal(before[0, :place], after[0, :place])
        assert (before[0, place:] != after[0, place:]).any(1).all()
    for place in range(2):
        changed = sources.clone()
        changed[0, place] = 5 + (changed[0, place] - 4) % 10
        after = trunk.hidden(tokens, lengths, changed, source_lengths)
        assert (before[0] != after[0]).any(1).all()
        assert torch.equal(before[1, :3], after[1, :3])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_it_learns_to_turn_sequences_round(norm):
    """Which no model of the target alone can: 10 symbols, each position another."""
    lm, rng, steps = model(norm, layers=1, dim=64, ffn=128), np.random.default_rng(0), 250
    optimiser = torch.optim.Adam(lm.parameters(), betas=(0.9, 0.98))

    def batch(count: int):
        words = [rng.integers(5, SIZE, rng.integers(2, 6)) for _ in range(count)]
        return [np.concatenate([one, [EOS], one[::-1]]) for one in words]

    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 3e-3 * min(1, (step + 1) / 50) * (1 - step / steps)
        loss, count = lm(lm.objective.training(batch(64), rng, SIZE))
        optimiser.zero_grad()
        (loss / count).backward()
        nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
        optimiser.step()
    lm.eval()
    with torch.no_grad():
        loss, count = lm(lm.objective.scoring(batch(200)))
    assert float(loss) / count < 0.2  # 2.1 without the source
