"""Scorers of local Hugging Face model directories of one text: BERT through our own fast pass,
other masked and causal models as they are.
"""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from lmtools.computing import Computing
from lmtools.device import (
    PRECISIONS,
    autocast,
    batch_rows,
    choose_device,
    numerics,
    resolve_precision,
)
from lmtools.errors import UserError
from lmtools.models.huggingface import bert_trunk
from lmtools.models.masked import Masked
from lmtools.outputs import Softmax
from lmtools.outputs.base import in_precision
from lmtools.score.base import Scorer
from lmtools.score.pretrained import boundaries, directory_hash, frame, load_pretrained
from lmtools.score.trees import SentenceTree, cut_parts, tree_sizes
from lmtools.specs import HF, LMSpec
from lmtools.version import __version__

LOGITS = 1 << 28  # logits that a pass makes at once, unless one sentence alone has more: 1 GiB
PICKED = 1 << 24  # of them in log-softmax at once
# by which names models say how many tokens their layers see
SPANS = ("sliding_window", "window_size", "attention_chunk_size")
# tokens of a tree, before sharing, to the rows of a batch; what a sentence adds to it, as a guess
TREE, ADDED = 2, 8


def load_huggingface(spec: LMSpec, computing: Computing) -> "HuggingFace":
    """Load the scorer of `hf:DIR`, a local directory with config.json, weights and tokenizer;
    nothing is fetched and no code of the directory runs.
    """

    def masked(config) -> bool:
        return (config.architectures or [""])[0].endswith(("ForMaskedLM", "ForPreTraining"))

    def family(transformers, config):
        return getattr(transformers, f"AutoModelFor{'Masked' if masked(config) else 'Causal'}LM")

    wanted = "a masked or causal language model with its tokenizer"
    model, tokenizer = load_pretrained(spec.lm.removeprefix(HF), family, wanted)
    kind = HuggingFaceBert if model.config.model_type == "bert" else HuggingFaceMasked
    if not masked(model.config):
        kind = HuggingFaceCausal
    return kind(model, tokenizer, spec, computing)


class HuggingFace(Scorer):
    """Base of the scorers of Hugging Face models; tokenisation is the model's own, with its
    boundary tokens.
    """

    def __init__(self, model, tokenizer, spec: LMSpec, computing: Computing):
        self.spec, self.device = spec, choose_device(computing.device)
        self.precision = resolve_precision(computing.precision, self.device)
        self.rows = batch_rows(computing.rows, self.device)
        self.model, self.tokenizer = model.to(self.device).eval(), tokenizer
        self.directory, self.intact = spec.lm.removeprefix(HF), spec.intact
        self.frame = frame(tokenizer)
        self.config = model.config.get_text_config()
        positions = getattr(self.config, "max_position_embeddings", None)
        self.longest = min(positions or tokenizer.model_max_length, tokenizer.model_max_length)
        self.signature = {
            "lm": f"hf-{model.config.model_type}" + ("-intact" if spec.intact else ""),
            "model": directory_hash(self.directory)[:16],
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

    def token_names(self, sentence):
        return self.tokenizer.convert_ids_to_tokens(list(sentence))

    def logits(self, ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        """Return the model's logits (B, T, V)."""
        with torch.inference_mode(), autocast(self.device, self.precision):
            return self.model(
                input_ids=ids.to(self.device), attention_mask=attention.to(self.device)
            ).logits

    def blocks(self, count: int, width: int) -> list[slice]:
        """Divide `count` rows of `width` tokens into slices for the memory of logits."""
        size = max(1, LOGITS // (width * self.config.vocab_size))
        return [slice(begin, begin + size) for begin in range(0, count, size)]

    def pick(self, logits: torch.Tensor, targets: torch.Tensor) -> np.ndarray:
        """log p of the targets (T,) by logits (T, V), float64 (T,)."""
        some = max(1, PICKED // logits.shape[-1])
        parts = [
            part.float().log_softmax(-1).gather(-1, gold[:, None].to(self.device))[:, 0]
            for part, gold in zip(logits.split(some), targets.split(some), strict=True)
        ]
        return torch.cat(parts).double().cpu().numpy()


class TreeScorer(HuggingFace):
    """Scores left to right, of sentences with common beginnings as one sequence: their prefix tree,
    in which each token sees those before it in its own sentences; no array of logits exists then.

    `shares`: whether that gave the model's own log-probabilities when it was tried; models for
    which it does not (positions that the attention mask decides, recurrent ones, logits that are
    scaled) score each sentence by itself.
    """

    def share(self, trunk: nn.Module, head: nn.Module, bias: str | None = None, *more) -> None:
        """Try trees with the model's `trunk`, whose states its `head` makes logits of, to which the
        tensor of the model named `bias` may come; other parts of it (`more`) are run beside it.
        """
        self.trunk, self.output = trunk, None
        if isinstance(head, nn.Linear):
            self.output = Softmax(head.weight).to(self.device)
            added = (head.bias, getattr(self.model, bias or "", None))
            for one in [one for one in added if one is not None]:
                self.output.bias = nn.Parameter(self.output.bias + one.flatten(), False)
        self.shares = self.output is not None and self.try_sharing()
        if not self.shares:
            return
        self.output = in_precision(self.output, PRECISIONS[self.precision])
        for part in (trunk, *more):
            for module in part.modules():
                if isinstance(module, nn.Linear):  # autocast would convert them in each pass
                    module.weight.data = module.weight.data.to(PRECISIONS[self.precision])

    def some(self, ids: tuple[int, ...]) -> list[tuple]:
        """Three sentences out of seven ids, two of which begin alike."""
        raise NotImplementedError

    def from_logits(self, sentences) -> list[np.ndarray]:
        """Score sentences, each by itself."""
        raise NotImplementedError

    def try_sharing(self) -> bool:
        """Return whether three short sentences have the same scores in a tree as alone."""
        ids = np.linspace(0, self.config.vocab_size - 1, 9).astype(int).tolist()[1:-1]
        some = self.some(tuple(ids))
        full, self.precision = self.precision, "float32"
        try:
            pairs = zip(self.from_tree(some), self.from_logits(some), strict=True)
            return all(np.allclose(one, other, rtol=1e-4, atol=1e-3) for one, other in pairs)
        except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, KeyError):
            return False  # a model that takes no such attention mask or positions
        finally:
            self.precision = full

    def tree_inputs(self, tree: SentenceTree) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return a tree's tokens (N,), their positions (N,), and the mask of attention (N, N)."""
        within, dtype = tree.ancestors(), PRECISIONS[self.precision]
        ids, depths, seen = (
            torch.tensor(array, device=self.device)
            for array in (tree.tokens, within.sum(1) - 1, within)
        )
        mask = torch.zeros(seen.shape, dtype=dtype, device=self.device)
        return ids, depths, mask.masked_fill_(~seen, torch.finfo(dtype).min)

    def score_tree(self, tree: SentenceTree, states: torch.Tensor, end: int) -> list[np.ndarray]:
        """Return the scores of the sentences of a tree whose states are (N, D)."""
        before, targets = (
            torch.tensor(array, device=self.device) for array in tree.predictions(end)
        )
        states = states.to(PRECISIONS[self.precision])
        normalisers = self.output.log_normaliser(states)
        scores = self.output.unnormalised(states[before], targets) - normalisers[before]
        return tree.split_values(scores.double().cpu().numpy())


class HuggingFaceCausal(TreeScorer):
    """log p of each token after the beginning-of-sentence token (or the end-of-text token that
    stands for it), and of the end.

    What sentences that stand together have in common at their beginning is computed once where
    `shares` (see TreeScorer).
    """

    kind = "perplexity"

    def __init__(self, model, tokenizer, spec: LMSpec, computing: Computing):
        super().__init__(model, tokenizer, spec, computing)
        self.begin, self.end = boundaries(model.config, tokenizer, self.directory)
        spans = (getattr(self.config, name, None) for name in SPANS)
        self.span = min((span for span in spans if isinstance(span, int)), default=self.longest)
        # some of transformers' classes name no base model
        trunk = model.get_decoder() if model.base_model is model else model.base_model
        self.share(trunk, model.get_output_embeddings())

    def some(self, ids):
        sentences = ids, (*ids[:2], *ids[:3]), ids[4:6]
        return [sentence[: self.span - 1] for sentence in sentences]

    def cost(self, sentence):
        """Return a guess that is equal for all where beginnings are shared: batches keep the order
        of the lists then.
        """
        return ADDED if self.shares else len(sentence) + 1

    def token_log_probs(self, sentences):
        if not self.shares:
            return self.from_logits(sentences)
        parts = [sentences[part] for part in cut_parts(tree_sizes(sentences), TREE * self.rows)]
        return [
            values
            for part in parts
            for values in (
                self.from_tree(part) if max(map(len, part)) < self.span else self.from_logits(part)
            )
        ]

    @torch.inference_mode()
    def from_tree(self, sentences) -> list[np.ndarray]:
        """Score sentences in one pass over the tree of their beginnings."""
        tree = SentenceTree.of(sentences, self.begin)
        ids, depths, mask = self.tree_inputs(tree)
        with autocast(self.device, self.precision):
            states = self.trunk(
                input_ids=ids[None], attention_mask=mask[None, None],
                position_ids=depths[None], use_cache=False,
            ).last_hidden_state[0]  # fmt: skip
        return self.score_tree(tree, states, self.end)

    def from_logits(self, sentences) -> list[np.ndarray]:
        """Score sentences, each by itself."""
        whole = [torch.tensor([self.begin, *s, self.end]) for s in sentences]
        ids = pad_sequence(whole, batch_first=True, padding_value=self.end)
        attention = pad_sequence([torch.ones_like(s) for s in whole], batch_first=True)
        result = []
        for some in self.blocks(*ids[:, 1:].shape):
            logits = self.logits(ids[some, :-1], attention[some, :-1])
            result += map(self.pick, logits, ids[some, 1:])
        return [row[: len(s) + 1] for row, s in zip(result, sentences, strict=True)]


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
        """Return the ids with boundary tokens, and the position of the first real token."""
        before, after = self.frame
        return torch.tensor([*before, *sentence, *after]), len(before)

    def from_intact(self, sentence):
        ids, first = self.whole(sentence)
        logits = self.logits(ids[None], torch.ones_like(ids)[None])[0]
        return self.pick(logits[first : first + len(sentence)], torch.tensor(sentence))

    def from_copies(self, sentence):
        ids, first = self.whole(sentence)
        which = torch.arange(len(sentence))
        copies = ids.repeat(len(sentence), 1)
        copies[which, first + which] = self.tokenizer.mask_token_id
        logits = [
            self.logits(copies[some], torch.ones_like(copies[some]))[
                torch.arange(len(which[some])), first + which[some]
            ]
            for some in self.blocks(*copies.shape)
        ]
        return self.pick(torch.cat(logits), torch.tensor(sentence))


class HuggingFaceBert(HuggingFaceMasked):
    """BERT's weights in our own masked model, whose pseudo-log-likelihood pass shares what the
    copies have in common.
    """

    def __init__(self, model, tokenizer, spec: LMSpec, computing: Computing):
        super().__init__(model, tokenizer, spec, computing)
        if not self.intact:
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
        before, after = self.frame
        ids = torch.tensor([[*before, *s, *after] for s in sentences], device=self.device)
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
    output = Softmax(head.decoder.weight)  # the embedding, or one of its own
    output.bias.data.copy_(head.bias if hasattr(head, "bias") else head.decoder.bias)
    return trunk, output
