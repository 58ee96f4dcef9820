"""A Hugging Face model with low-rank updates (LoRA) as a language model of the training loop: only
the updates learn, and only they are saved, as the package peft reads them.
"""

import dataclasses
import json
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.specs import HF
from lmtools.models.adapters import CONFIG, DOWN, PREFIX, UP, WEIGHTS, find_linear
from lmtools.models.huggingface import HuggingFaceTrunk, find_boundaries, load_pretrained
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import CausalObjective
from lmtools.models.outputs import Softmax
from lmtools.models.settings import Freeze, Settings
from lmtools.text.subword import BOS, EOS, SPECIALS, UNK

SAMPLE = "The king came to the city, and it's 1 of 20; see: naïve café."


class LowRankLinear(nn.Module):
    """W x + b + alpha / rank * B A x, of which A (rank, columns) and B (rows, rank) learn."""

    def __init__(self, linear: nn.Linear, rank: int, alpha: float, generator: torch.Generator):
        super().__init__()
        rows, columns = linear.weight.shape
        self.linear, self.scale = linear, alpha / rank
        self.down = nn.Parameter(torch.randn(rank, columns, generator=generator) * columns**-0.5)
        self.up = nn.Parameter(torch.zeros(rows, rank))

    @property
    def weight(self) -> Tensor:
        """Return W, whose type some of transformers' models ask for."""
        return self.linear.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + self.scale * F.linear(F.linear(x, self.down), self.up)


class AdaptedModel(LanguageModel):
    """The left-to-right model of a directory with updates of its linear layers, over ids of
    `lmtools corpus --subword hf:DIR`. Its state is the updates alone, by peft's names.
    """

    file, adapted = WEIGHTS, True

    def __init__(self, settings: Settings, base: str, subword):
        nn.Module.__init__(self)
        check_settings(settings, base)
        self.settings, self.size, self.base = settings, subword.size, base.removeprefix(HF)
        self.objective = CausalObjective()
        wanted = "a left-to-right language model with its tokenizer"
        _, model, tokenizer = load_pretrained(self.base, lambda config: "ForCausalLM", wanted)
        model.requires_grad_(False)
        self.transposed = any(type(m).__name__ == "Conv1D" for m in model.modules())
        self.table = place_ids(model, tokenizer, subword, base)
        trunk = model.get_decoder() if model.base_model is model else model.base_model
        self.trunk, head = HuggingFaceTrunk(trunk), model.get_output_embeddings()
        self.trunk.positions = getattr(trunk.config, "max_position_embeddings", 1 << 20)
        self.output = Softmax(head.weight)
        if head.bias is not None:
            self.output.bias = nn.Parameter(head.bias.detach())
        self.output.requires_grad_(False)
        self.check_head(model.eval())
        self.updates = self.insert(model)

    def insert(self, model: nn.Module) -> dict[str, LowRankLinear]:
        """Put updates into the linear layers that settings name; return them by name."""
        lora, linear = self.settings.lora, find_linear(model)
        known = {name.rpartition(".")[2] for name in linear}
        if unknown := set(lora.targets) - known:
            raise UserError(
                f"lora.targets: {min(unknown)} is no linear layer of {HF}{self.base}; has"
                f" {', '.join(sorted(known))}"
            )
        generator = torch.Generator().manual_seed(self.settings.seed)
        updates: dict[str, LowRankLinear] = {}
        for name, module in linear.items():
            parent, _, last = name.rpartition(".")
            if not lora.targets or last in lora.targets:
                updates[name] = LowRankLinear(module, lora.rank, lora.alpha, generator)
                setattr(model.get_submodule(parent), last, updates[name])
        return updates

    @torch.no_grad()
    def check_head(self, model: nn.Module) -> None:
        """Raise UserError unless the logits are the last states times the output matrix."""
        ids = self.table[torch.arange(5, min(self.size, 12))][None]
        states = self.trunk.hidden(ids, torch.tensor([ids.shape[1]]))[0]
        wanted = model(input_ids=ids).logits[0].float().log_softmax(-1)
        if not torch.allclose(self.output.distribution(states), wanted, rtol=1e-4, atol=1e-3):
            raise UserError(
                f"{HF}{self.base}: its logits are not its last states times a matrix (they are"
                " capped, or scaled); give a model such as Gemma 3's, Llama's or GPT-2's"
            )

    def forward(self, examples):
        ids = {name: self.table[getattr(examples, name)] for name in ("inputs", "targets")}
        return super().forward(dataclasses.replace(examples, **ids))

    def to(self, *args, **named):
        self.table = self.table.to(*args, **named)
        return super().to(*args, **named)

    @property
    def shares(self) -> bool:
        """Return False: no matrix of the model is saved."""
        return False

    def state_dict(self, *_, **__) -> dict[str, Tensor]:
        """Return the updates by peft's names."""
        return {
            f"{PREFIX}{name}{part}": factor.detach()
            for name, update in self.updates.items()
            for part, factor in ((DOWN, update.down), (UP, update.up))
        }

    @torch.no_grad()
    def load_state_dict(self, tensors, *_, **__) -> None:
        own = self.state_dict()
        if {n: t.shape for n, t in own.items()} != {n: t.shape for n, t in tensors.items()}:
            raise RuntimeError("other updates than the settings ask for")
        for name, tensor in own.items():
            tensor.copy_(tensors[name])

    def save_beside(self, directory) -> None:
        """Write the configuration by which peft reads the weights."""
        lora = self.settings.lora
        tree = {
            "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": self.base,
            "r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": 0.0, "bias": "none",
            "target_modules": list(self.updates), "fan_in_fan_out": self.transposed,
            "inference_mode": True,
        }  # fmt: skip
        with atomic_text(Path(directory) / CONFIG, follow=False) as stream:
            stream.write(json.dumps(tree, indent=2) + "\n")

    def describe(self) -> str:
        """Return a line about where a training starts."""
        size = sum(tensor.numel() for tensor in self.state_dict().values())
        rank = self.settings.lora.rank
        return (
            f"weights of {HF}{self.base}; {size:,} numbers of updates of rank {rank} to"
            f" {len(self.updates)} matrices learn"
        )


def check_settings(settings: Settings, base: str) -> None:
    """Raise UserError for settings that a Hugging Face model does not have."""
    kinds = settings.model, settings.objective, settings.criterion
    if kinds != ("causal", "causal", "softmax"):
        raise UserError(
            f"{base}: a left-to-right model with a softmax; give model=causal objective=causal"
            " criterion=softmax"
        )
    if not settings.lora.rank or settings.freeze != Freeze() or settings.lora.embeddings:
        raise UserError(f"{base}: learns by low-rank updates alone; give lora.rank=8, no freeze")
    if settings.arch or settings.output:
        raise UserError(f"{base}: brings its architecture; leave arch and output out of --conf")


def place_ids(model: nn.Module, tokenizer, subword, base: str) -> Tensor:
    """Return the model's id of each id of a corpus; UserError where `subword` is another one."""
    ids = tokenizer(SAMPLE, add_special_tokens=False)["input_ids"]
    unknown = tokenizer.unk_token_id
    expected = [UNK if i == unknown else i + len(SPECIALS) for i in ids]
    if subword.scheme != "huggingface" or subword.encode(SAMPLE) != expected:
        raise UserError(
            f"{base}: the corpus has other tokens; make it with lmtools corpus --subword {base}"
        )
    begin, end = find_boundaries(model.config, tokenizer, base)
    table = torch.arange(subword.size) - len(SPECIALS)
    table[: len(SPECIALS)] = end
    table[BOS], table[EOS], table[UNK] = begin, end, end if unknown is None else unknown
    return table
