"""What a training starts from and what of it learns: weights of a model directory of the same
architecture, whose vocabulary may be another one; layers that stay.
"""

import dataclasses
import json
from collections.abc import Hashable, Iterator, Sequence

import torch
from torch import Tensor

from lmtools.base.errors import UserError
from lmtools.models.checkpoint import load_model, load_state, state_dict
from lmtools.models.lm import LanguageModel
from lmtools.models.outputs import CRITERIA
from lmtools.models.outputs.corrected import NEVER, Corrected
from lmtools.models.outputs.softmax import Adaptive
from lmtools.models.settings import Settings
from lmtools.text.subword import SPECIALS, Subword

# settings of an output layer that its tensors depend on; the others are of what training draws
SHAPING = ("cutoffs", "divide")


@torch.no_grad()
def start_from(directory, lm: LanguageModel, subword: Subword) -> str:
    """Put a model directory's weights into `lm`, by piece or predicted word; return a line on that.
    UserError where architectures differ.
    """
    other, vocabulary = load_model(directory, pairs=lm.objective.pairs)
    compare_settings(lm.settings, other.settings, directory)
    if isinstance(lm.output, Adaptive) and subword.hash == vocabulary.hash:
        lm.output.rank.copy_(other.output.rank)  # no row changes its cluster
    same = lm.settings.criterion == other.settings.criterion
    if isinstance(lm.output, Corrected):
        release_bias(other.output, same)
    ours, theirs = name_rows(lm, subword), name_rows(other, vocabulary)
    tensors, learnt = state_dict(lm), dict(lm.named_parameters())
    for name, tensor in state_dict(other).items():
        if name in ours:
            tensors[name] = move_rows(tensor, theirs[name], ours[name])
        elif name in learnt:
            tensors[name] = tensor
    load_state(lm, tensors, directory)
    if isinstance(lm.output, Corrected):
        if not same:
            lm.output.bias.copy_(lm.output.bias_from_log(lm.output.bias))
        lm.output.bias -= log_noise(lm.output)[0]
    notes = [f"weights of {directory}"]
    if not same:
        notes.append(
            f"criterion {other.settings.criterion} there and {lm.settings.criterion} here: the"
            " output matrix stays, biases start from the same log-probabilities"
        )
    if subword.hash != vocabulary.hash:
        notes.append(count_known(subword, vocabulary, "pieces"))
        if subword.words and vocabulary.words:
            lists = subword.words.words, vocabulary.words.words
            notes.append(count_known(*lists, "predicted words"))
    return "; ".join(notes)


def compare_settings(ours: Settings, theirs: Settings, directory) -> None:
    """Raise UserError naming the first differing setting; dropout and some criteria may differ."""
    alike = all(issubclass(CRITERIA[some.criterion], Corrected) for some in (ours, theirs))
    for (key, here), (_, there) in zip(shaping(ours), shaping(theirs), strict=False):
        if key == "criterion" and alike:
            continue
        if here != there:
            here, there = (v if isinstance(v, str) else json.dumps(v) for v in (here, there))
            raise UserError(
                f"{directory}: {key} is {there} there and {here} here; --init continues a model of"
                f" the same architecture: give {key}={there}"
            )


def shaping(settings: Settings) -> Iterator[tuple[str, object]]:
    """Yield the settings that the names and shapes of the tensors depend on, and what they mean."""
    for name in ("model", "objective", "criterion"):
        yield name, getattr(settings, name)
    for name, value in dataclasses.asdict(settings.architecture).items():
        if not name.endswith("dropout"):
            yield f"arch.{name}", value
    for name, value in dataclasses.asdict(settings.output_layer).items():
        if name in SHAPING:
            yield f"output.{name}", value


def name_rows(lm: LanguageModel, subword: Subword) -> dict[str, list[Hashable]]:
    """Return each row's key (its piece, or number of its class), by name of tensor."""
    targets = subword.words.words.vocabulary if lm.two_way else subword.vocabulary
    named = lm.named_parameters()
    table = next(name for name, parameter in named if parameter is lm.trunk.lookup.weight)
    rows: dict[str, list[Hashable]] = {
        f"output.{name}": [targets[i] if i >= 0 else i for i in ids.tolist()]
        for name, ids in lm.output.rows().items()
    }
    return {**rows, table: list(subword.vocabulary)}


def move_rows(tensor: Tensor, old: Sequence[Hashable], new: Sequence[Hashable]) -> Tensor:
    """Return the rows of `old` in the order of `new`; unknown ones are the average row."""
    place = {name: row for row, name in enumerate(old)}
    learnt = [row for row, name in enumerate(old) if name not in SPECIALS]
    rows = torch.tensor([place.get(name, -1) for name in new])
    average = tensor[learnt or slice(None)].double().mean(0).to(tensor.dtype)
    known = (rows >= 0).view(-1, *[1] * (tensor.dim() - 1))
    return torch.where(known, tensor[rows.clamp(min=0)], average)


def release_bias(output: Corrected, same: bool) -> None:
    """Make log-probabilities of the biases, without noise, but of the `same` criterion; excluded
    ids are as rare as the rarest.
    """
    added, known = log_noise(output)
    output.bias += added
    if not same:
        output.bias.copy_(output.bias_to_log(output.bias))
        output.bias[~known] = output.bias[known].min()


def log_noise(output: Corrected) -> tuple[Tensor, Tensor]:
    """Return the noise's addition to log-posteriors (V,), 0 if not finite, and where it is."""
    added = (torch.as_tensor(output.before()) + output.after()).expand(len(output.bias))
    known = added > NEVER / 2
    return torch.where(known, added, 0.0).float(), known


def count_known(new: Subword, old: Subword, what: str) -> str:
    """Return how many new pieces the old vocabulary has, in words, without specials."""
    ours = set(new.vocabulary).difference(SPECIALS)
    known = len(ours.intersection(old.vocabulary))
    return (
        f"{known:,} of {len(ours):,} {what} are known there, {len(ours) - known:,} start from the"
        " average"
    )


def choose_parameters(lm: LanguageModel, settings: Settings) -> None:
    """Let what settings freeze have no gradient."""
    freeze, trunk = settings.freeze, lm.trunk
    if freeze.layers > trunk.depth:
        raise UserError(
            f"freeze.layers: {freeze.layers} is more than the {trunk.depth} layers of the model;"
            f" give at most {trunk.depth}"
        )
    # the part of the trunk below its layers
    below = next(part for part in lm.trunk.children() if lm.trunk.lookup in part.modules())
    stays = [below] * freeze.embedding + [lm.output] * freeze.output
    for part in (*stays, *trunk.stack[: freeze.layers]):
        part.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in lm.parameters()):
        raise UserError("freeze: nothing is left to train; freeze less")
