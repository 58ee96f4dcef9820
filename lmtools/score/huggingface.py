"""Scorers of local Hugging Face model directories: BERT through our own fast pass, other masked and
causal models as they are.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from lmtools import __version__
from lmtools.device import autocast, batch_rows, choose_device, numerics, resolve_precision
from lmtools.errors import UserError
from lmtools.files import sha256
from lmtools.models.huggingface import bert_trunk
from lmtools.models.masked import Masked
from lmtools.outputs import Softmax
from lmtools.score.base import Scorer


def load_huggingface(directory: str, device="auto", precision="float32", intact=False, rows=None):
    """The scorer of a local directory with config.json, weights and tokenizer; nothing is fetched
    and no code of the directory runs.
    """

    def masked(config) -> bool:
        return (config.architectures or [""])[0].endswith(("ForMaskedLM", "ForPreTraining"))

    def family(transformers, config):
        return getattr(transformers, f"AutoModelFor{'Masked' if masked(config) else 'Causal'}LM")

    wanted = "a masked or causal language model with its tokenizer"
    model, tokenizer = load_pretrained(directory, family, wanted)
    kind = HuggingFaceBert if model.config.model_type == "bert" else HuggingFaceMasked
    if not masked(model.config):
        kind = HuggingFaceCausal
    return kind(model, tokenizer, directory, device, precision, intact, rows)


def load_pretrained(directory: str, family: Callable, wanted: str):
    """The model, of the class that `family(transformers, config)` names, and the tokenizer of a
    local directory; UserError without them.
    """
    try:
        import transformers
    except ImportError:
        raise UserError(
            f"hf:{directory}: needs the package transformers; pip install 'lmtools[hf]'"
        ) from None
    transformers.logging.set_verbosity_error()
    if not (Path(directory) / "config.json").is_file():
        cause = "no config.json there" if Path(directory).exists() else "no such directory"
        raise UserError(
            f"hf:{directory}: {cause}, and nothing is downloaded; give the local directory that"
            " save_pretrained wrote"
        )
    if any(Path(directory).glob("*.bin")) and not any(Path(directory).glob("*.safetensors")):
        remedy = (
            "load it where you trust it and save it again: save_pretrained writes model.safetensors"
        )
        raise UserError(f"hf:{directory}: its weights are a pickle, which may run code; {remedy}")
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(directory, **local)
        tokenizer = transformers.AutoTokenizer.from_pretrained(directory, **local)
        model = family(transformers, config).from_pretrained(
            directory, **local, use_safetensors=True, dtype=torch.float32
        )
    # transformers raises whatever its parts raise, for one missing or torn file
    except Exception as error:
        cause = " ".join(str(error).split())[:200]
        raise UserError(f"hf:{directory}: {cause}; give {wanted}") from None
    return model, tokenizer


def directory_hash(directory) -> str:
    """Identifies a model by the files in its directory."""
    paths = Path(directory).iterdir()
    files = sorted(p for p in paths if p.is_file() and not p.name.startswith("."))
    return hashlib.sha256("".join(p.name + sha256(p) for p in files).encode()).hexdigest()


class HuggingFace(Scorer):
    """What the scorers of Hugging Face models share; tokenisation is the model's own, with its
    boundary tokens.
    """

    def __init__(self, model, tokenizer, directory, device, precision, intact, rows=None):
        self.device = choose_device(device)
        self.precision = resolve_precision(precision, self.device)
        self.rows = batch_rows(rows, self.device)
        self.model, self.tokenizer = model.to(self.device).eval(), tokenizer
        self.directory, self.intact = directory, intact
        self.longest = min(
            getattr(model.config, "max_position_embeddings", tokenizer.model_max_length),
            tokenizer.model_max_length,
        )
        self.signature = {
            "lm": f"hf-{model.config.model_type}" + ("-intact" if intact else ""),
            "model": directory_hash(directory)[:16],
            **numerics(self.precision, self.device, self.rows), "version": __version__,
        }  # fmt: skip

    def prepare(self, texts):
        if not texts:  # which the tokenizer does not take
            return []
        normalised = [self.normalise(text) for text in texts]
        encoded = self.tokenizer(normalised, add_special_tokens=False)["input_ids"]
        for text, ids in zip(texts, encoded, strict=True):
            if len(ids) + 2 > self.longest:
                size = f"{len(ids)} tokens and the model {self.longest} positions"
                raise UserError(f"hf:{self.directory}: {text[:60]!r}... has {size}; drop it")
        return [tuple(ids) for ids in encoded]

    def unknown(self, sentence):
        return np.array([token == self.tokenizer.unk_token_id for token in sentence], dtype=bool)

    def logits(self, ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        """The model's logits (B, T, V)."""
        with torch.inference_mode(), autocast(self.device, self.precision):
            return self.model(
                input_ids=ids.to(self.device), attention_mask=attention.to(self.device)
            ).logits


class HuggingFaceCausal(HuggingFace):
    """log p of each token after the beginning-of-sentence token (or the end-of-text token that
    stands for it), and of the end.
    """

    kind = "perplexity"

    def cost(self, sentence):
        return len(sentence) + 1

    def token_log_probs(self, sentences):
        end = self.tokenizer.eos_token_id
        begin = self.tokenizer.bos_token_id if self.tokenizer.bos_token_id is not None else end
        if begin is None or end is None:
            raise UserError(
                f"hf:{self.directory}: the tokenizer has no beginning or end of sentence; set"
                " eos_token in its configuration"
            )
        whole = [torch.tensor([begin, *s, end]) for s in sentences]
        ids = pad_sequence(whole, batch_first=True, padding_value=end)
        attention = pad_sequence([torch.ones_like(s) for s in whole], batch_first=True)
        log_p = self.logits(ids[:, :-1], attention[:, :-1]).float().log_softmax(-1)
        gold = log_p.gather(-1, ids[:, 1:, None].to(self.device))[..., 0].double().cpu().numpy()
        return [row[: len(s) + 1] for row, s in zip(gold, sentences, strict=True)]


class HuggingFaceMasked(HuggingFace):
    """Pseudo-log-likelihood: each token from a copy in which it alone is masked; boundary tokens
    are not scored (their log p is 0).

    `intact` scores all tokens from one unmasked pass instead.
    """

    kind = "pseudo-perplexity"

    def cost(self, sentence):
        return (len(sentence) + 2) * (1 if self.intact else len(sentence) or 1)

    def token_log_probs(self, sentences):
        score = self.from_intact if self.intact else self.from_copies
        return [np.append(score(s), 0.0) if s else np.zeros(1) for s in sentences]

    def whole(self, sentence) -> tuple[torch.Tensor, int]:
        """The ids with boundary tokens, and the position of the first real token."""
        ids = self.tokenizer.build_inputs_with_special_tokens(list(sentence))
        first = next(i for i in range(len(ids)) if tuple(ids[i : i + len(sentence)]) == sentence)
        return torch.tensor(ids), first

    def from_intact(self, sentence):
        ids, first = self.whole(sentence)
        logits = self.logits(ids[None], torch.ones_like(ids)[None])[0]
        log_p = logits[first : first + len(sentence)].float().log_softmax(-1)
        return log_p[torch.arange(len(sentence)), list(sentence)].double().cpu().numpy()

    def from_copies(self, sentence):
        ids, first = self.whole(sentence)
        which = torch.arange(len(sentence))
        copies = ids.repeat(len(sentence), 1)
        copies[which, first + which] = self.tokenizer.mask_token_id
        logits = self.logits(copies, torch.ones_like(copies))[which, first + which]
        log_p = logits.float().log_softmax(-1)
        return log_p[which, list(sentence)].double().cpu().numpy()


class HuggingFaceBert(HuggingFaceMasked):
    """BERT's weights in our own masked model, whose pseudo-log-likelihood pass shares what the
    copies have in common.
    """

    def __init__(self, model, tokenizer, directory, device, precision, intact, rows=None):
        super().__init__(model, tokenizer, directory, device, precision, intact, rows)
        if not intact:
            self.trunk, self.output = (part.to(self.device).eval() for part in from_bert(model))

    def token_log_probs(self, sentences):
        if self.intact:
            return super().token_log_probs(sentences)
        result: list = [np.zeros(1)] * len(sentences)
        for length in {len(s) for s in sentences} - {0}:
            some = [i for i, s in enumerate(sentences) if len(s) == length]
            for i, values in zip(some, self.same_length([sentences[i] for i in some]), strict=True):
                result[i] = np.append(values, 0.0)
        return result

    @torch.inference_mode()
    def same_length(self, sentences) -> np.ndarray:
        """Token scores (B, T) of sentences of one length."""
        ids = torch.tensor(
            [self.tokenizer.build_inputs_with_special_tokens(list(s)) for s in sentences],
            device=self.device,
        )
        with autocast(self.device, self.precision):
            # [CLS] and [SEP] are not scored
            states = self.trunk.masked_states(ids, self.tokenizer.mask_token_id)[:, 1:-1]
            head = self.trunk.head(states.flatten(0, 1))
        dtype = torch.float32 if self.precision == "float32" else torch.bfloat16
        scores = self.output.log_prob(head.to(dtype), ids[:, 1:-1].flatten())
        return scores.view(len(sentences), -1).double().cpu().numpy()


def from_bert(model) -> tuple[Masked, Softmax]:
    """Our masked model and softmax with the weights of a Hugging Face BERT that predicts masked
    tokens.
    """
    trunk, head = bert_trunk(model.bert), model.cls.predictions
    trunk.head_dense.load_state_dict(head.transform.dense.state_dict())
    trunk.head_norm.load_state_dict(head.transform.LayerNorm.state_dict())
    output = Softmax(trunk.shared)
    output.bias.data.copy_(head.bias if hasattr(head, "bias") else head.decoder.bias)
    return trunk, output
