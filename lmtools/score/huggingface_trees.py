"""Models of local Hugging Face directories that read left to right, alone or given a source; and
the loading of every kind.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import HF, LMSpec
from lmtools.models.adapters import find_linear
from lmtools.models.device import PRECISIONS, autocast, resolve_precision
from lmtools.models.engine import describe_engine, pack_linear, prepare_output, resolve_engine
from lmtools.models.huggingface import find_boundaries, first_id, load_pretrained
from lmtools.models.outputs import Softmax
from lmtools.models.outputs.base import in_precision
from lmtools.score.huggingface import LOGITS, HuggingFace, HuggingFaceMasked
from lmtools.score.trees import (
    SentenceTree,
    cut_parts,
    plan_pairs,
    plan_trees,
    score_nodes,
    tree_sizes,
)

# by which names models say how many tokens their layers see
SPANS = ("sliding_window", "window_size", "attention_chunk_size")
# tokens of a tree, before sharing, to the rows of a batch; what a sentence adds to it, as a guess
TREE, ADDED = 2, 8
TOGETHER = 1024  # tokens of lists, before sharing, that are one tree where they share enough
BETWEEN = -1  # between source and target; no id of a tokenizer, which may read </s> in a text


class HuggingFaceTree(HuggingFace):
    """Left-to-right model, which reads sentences with common beginnings as one sequence: their
    prefix tree, in which each token sees those before it in its own sentences; no array of logits
    exists then.

    `shares`: whether that gave the model's own log-probabilities when it was tried; models for
    which it does not (positions that the attention mask decides, recurrent ones, logits that are
    scaled) score each sentence by itself.
    """

    kind, engine, slides = "perplexity", "torch", False

    def share(self, trunk: nn.Module, bias: str, *more: nn.Module) -> None:
        """Try trees with the model's `trunk`, whose states its head makes logits of, to which the
        tensor of the model named `bias` may come; other parts of it (`more`) are run beside it.
        """
        self.trunk, self.shares = trunk, False
        head = self.model.get_output_embeddings()
        if not isinstance(head, nn.Linear):
            return
        self.output = Softmax(head.weight).to(self.device)
        for added in (head.bias, getattr(self.model, bias, None)):
            if added is not None:
                self.output.bias = nn.Parameter(self.output.bias + added.flatten(), False)
        self.shares = True
        self.shares = self.try_sharing()
        if not self.shares:
            return
        if self.engine == "prepared":
            self.output = prepare_output(self.output, self.precision)
            if self.precision == "int8":  # of the output matrix: layers in int8 lose too much
                self.precision = resolve_precision("auto", self.device)
            find_linear(self.model)
            pack_linear(trunk, self.precision)
            return
        self.output = in_precision(self.output, PRECISIONS[self.precision])
        for part in (trunk, *more):
            for module in part.modules():
                if isinstance(module, nn.Linear):  # autocast would convert them in each pass
                    module.weight.data = module.weight.data.to(PRECISIONS[self.precision])

    def examples(self, ids: tuple[int, ...]) -> list[tuple]:
        """Return three sentences out of seven ids, two of which begin alike."""
        raise NotImplementedError

    def from_logits(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        raise NotImplementedError

    def try_sharing(self) -> bool:
        """Return whether three short sentences have the same scores in a tree as alone."""
        ids = np.linspace(0, self.config.vocab_size - 1, 9).astype(int).tolist()[1:-1]
        sentences = self.examples(tuple(ids))
        precision, self.precision = self.precision, "float32"
        try:
            pairs = zip(self.from_tree(sentences), self.from_logits(sentences), strict=True)
            return all(np.allclose(tree, alone, rtol=1e-4, atol=1e-3) for tree, alone in pairs)
        except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, KeyError):
            return False  # a model that takes no such attention mask or positions
        finally:
            self.precision = precision

    def place_tokens(self, depths: Tensor) -> dict[str, Tensor]:
        """Return the argument by which the trunk takes the positions of tokens (N,)."""
        return {"position_ids": depths[None]}

    def score_tree(self, sentences: Sequence[tuple], **given: Tensor) -> list[np.ndarray]:
        """Score sentences in one pass over their tree; `given`: what else the trunk reads."""
        tree, dtype = SentenceTree.of(sentences, self.begin), PRECISIONS[self.precision]
        within = tree.ancestors()
        ids, depths, seen = (
            torch.from_numpy(array).to(self.device)
            for array in (tree.tokens, within.sum(1) - 1, within)
        )
        mask = torch.zeros(seen.shape, dtype=dtype, device=self.device)
        mask.masked_fill_(~seen, torch.finfo(dtype).min)
        with autocast(self.device, self.precision):
            states = self.trunk(
                input_ids=ids[None], attention_mask=mask[None, None],
                **self.place_tokens(depths), **given, use_cache=False,
            ).last_hidden_state[0]  # fmt: skip
        return score_nodes(tree, states.to(dtype), self.output, self.end)


class HuggingFaceCausal(HuggingFaceTree):
    """log p of each token after the first one (beginning or end of text), and of the end. What
    does not fit the positions is read in overlapping windows, each token where it has most context.
    """

    engines = slides = True

    def __init__(self, model, tokenizer, spec: LMSpec, computing: Computing):
        super().__init__(model, tokenizer, spec, computing)
        self.begin, self.end = find_boundaries(model.config, tokenizer, self.source)
        spans = (getattr(self.config, name, None) for name in SPANS)
        self.span = min((span for span in spans if isinstance(span, int)), default=self.longest + 2)
        self.engine = resolve_engine(computing.engine, self.precision, self.device)
        # some of transformers' classes name no base model
        self.share(model.get_decoder() if model.base_model is model else model.base_model, "")
        if self.shares:
            self.signature |= describe_engine(self.engine, self.precision)
        elif self.precision == "int8":
            raise UserError(
                f"{self.source}: no int8 for {model.config.model_type}, whose logits are not its"
                " last states times a matrix; use bfloat16 or float32"
            )
        else:
            self.longest = min(self.longest, max(2, LOGITS // self.config.vocab_size))

    def examples(self, ids):
        sentences = ids, (*ids[:2], *ids[:3]), ids[4:6]
        return [sentence[: self.span - 1] for sentence in sentences]

    def cost(self, sentence):
        """Return a guess, equal for all where beginnings are shared, to keep the lists' order."""
        return ADDED if self.shares else len(sentence) + 1

    def plan_trees(self, sentences):
        if not self.shares:
            return []
        return plan_trees(sentences, TOGETHER, min(self.longest, self.span - 1))

    def token_log_probs(self, sentences):
        cuts = [self.windows(sentence) for sentence in sentences]
        parts = [
            s[begin:end] for s, c in zip(sentences, cuts, strict=True) for begin, end, _, _ in c
        ]
        values = iter(self.score_parts(parts))
        return [np.concatenate([next(values)[first:last] for _, _, first, last in c]) for c in cuts]

    def score_parts(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Score sentences that fit the positions."""
        if not self.shares:
            return self.from_logits(sentences)
        scores: list[np.ndarray] = []
        for part in cut_parts(tree_sizes(sentences), TREE * self.rows):
            near = max(map(len, sentences[part])) < self.span
            scores += (self.from_tree if near else self.from_states)(sentences[part])
        return scores

    @torch.inference_mode()
    def from_tree(self, sentences):
        return self.score_tree(sentences)

    @torch.inference_mode()
    def from_states(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Score sentences that reach beyond what a layer sees, each by itself, by the trunk's own
        attention; the logits of a block of the vocabulary exist at a time.
        """
        scores = []
        for sentence in sentences:
            ids = torch.tensor([[self.begin, *sentence, self.end]], device=self.device)
            with autocast(self.device, self.precision):
                states = self.trunk(input_ids=ids[:, :-1], use_cache=False).last_hidden_state[0]
            heads = states.to(PRECISIONS[self.precision])
            scores.append(self.output.log_prob(heads, ids[0, 1:]).double().cpu().numpy())
        return scores

    def from_logits(self, sentences):
        ids, real = self.pad([(self.begin, *s, self.end) for s in sentences], self.end)
        rows = []
        for block in self.blocks(*ids[:, 1:].shape):
            rows += map(self.pick, self.logits(ids[block, :-1], real[block, :-1]), ids[block, 1:])
        return [row[: len(s) + 1] for row, s in zip(rows, sentences, strict=True)]


class HuggingFaceTranslation(HuggingFaceTree):
    """log p of each token of a target and of its end, given a source; what of the vocabulary the
    model was not to produce counts too, as in transformers' own loss.

    Texts are pairs (source, target), a sentence is the ids of the source with what the tokenizer
    adds, BETWEEN, the ids of the target. A source is encoded once for all of its targets, which are
    one tree where `shares`, else a batch, as are the sources of one target. Neither side may exceed
    the positions.
    """

    pairs = True

    def __init__(self, model, tokenizer, spec: LMSpec, computing: Computing):
        super().__init__(model, tokenizer, spec, computing)
        self.begin = first_id(model.config, "decoder_start_token_id")
        bare, whole = (
            tokenizer(text_target="a", add_special_tokens=added)["input_ids"]
            for added in (False, True)
        )
        if self.begin is None or whole[:-1] != bare:
            raise UserError(
                f"{self.source}: its targets are not a token to begin with, the text and an"
                " end (but hold a code of the language, for example); give a model such as Marian's"
            )
        self.end, self.reader = whole[-1], model.get_encoder()
        self.share(model.get_decoder(), "final_logits_bias", self.reader)

    def examples(self, ids):
        targets = ids, (*ids[:2], *ids[:3]), ids[4:6]
        return [(*ids[3:], self.end, BETWEEN, *target) for target in targets]

    def place_tokens(self, depths):
        return {"cache_position": depths}

    def prepare(self, texts):
        if not texts:  # which the tokenizer does not take
            return []
        sources, targets = ([self.normalise(text[side]) for text in texts] for side in (0, 1))
        read = self.tokenizer(sources)["input_ids"]
        predicted = self.tokenizer(text_target=targets, add_special_tokens=False)["input_ids"]
        self.check_ids([*read, *predicted])
        for (source, target), ids, gold in zip(texts, read, predicted, strict=True):
            self.check_length(source, ids, 0)
            self.check_length(target, [*gold, self.end], 0)
        return [(*ids, BETWEEN, *gold) for ids, gold in zip(read, predicted, strict=True)]

    def cost(self, sentence):
        # both sides are padded to the longer one: equal costs are equal shapes
        source, target = split(sentence)
        return 2 * max(len(source), len(target) + 1)

    def unknown(self, sentence):
        return super().unknown(split(sentence)[1])

    def token_names(self, sentence):
        return super().token_names(split(sentence)[1])

    def plan_trees(self, sentences):
        return plan_pairs(list(map(split, sentences)), TREE * 1024, self.longest)

    @torch.inference_mode()
    def from_tree(self, sentences):
        sources, targets = zip(*map(split, sentences), strict=True)
        if not (self.shares and len(set(sources)) == 1):
            return self.decode(sentences, planned=True)
        source = torch.tensor(sources[:1], device=self.device)
        with autocast(self.device, self.precision):
            states = self.encode(source, torch.ones_like(source))
        return self.score_tree(targets, encoder_hidden_states=states)

    def token_log_probs(self, sentences):
        return self.decode(sentences)

    def from_logits(self, sentences):
        return self.decode(sentences, logits=True)

    def encode(self, ids: Tensor, attention: Tensor) -> Tensor:
        """Return the encoder's states (B, S, D)."""
        return self.reader(input_ids=ids, attention_mask=attention).last_hidden_state

    @torch.inference_mode()
    def decode(self, sentences, planned=False, logits=False) -> list[np.ndarray]:
        """Score sentences, each by itself: padded to the longer side of all, or, of one source or
        one target (`planned`), each side to its own longest, beside one encoding of what is one
        source. `logits`: in any case by those of the model as a whole.
        """
        sources, targets = zip(*map(split, sentences), strict=True)
        inputs = [(self.begin, *target) for target in targets]
        width = 0 if planned else max(map(len, (*sources, *inputs)))
        once = planned and len(set(sources)) == 1
        ids, attention = self.pad(sources[:1] if once else sources, self.end, width)
        before, _ = self.pad(inputs, self.end, width)
        gold = [torch.tensor([*target, self.end], device=self.device) for target in targets]
        with autocast(self.device, self.precision):
            states = self.encode(ids, attention)
        if once:
            states = states.expand(len(sentences), *states.shape[1:])
            attention = attention.expand(len(sentences), -1)
        scores: list[np.ndarray] = []
        score = self.score_states if self.shares and not logits else self.score_logits
        for block in self.blocks(*before.shape):
            scores += score(before[block], states[block], attention[block], gold[block])
        return scores

    def score_states(
        self, before: Tensor, states: Tensor, attention: Tensor, gold: Sequence[Tensor]
    ) -> list[np.ndarray]:
        """Score `gold`, tokens and end (T,) each, behind the tokens `before` (B, T)."""
        with autocast(self.device, self.precision):
            rows = self.trunk(
                input_ids=before, use_cache=False,
                encoder_hidden_states=states, encoder_attention_mask=attention,
            ).last_hidden_state  # fmt: skip
        read = [row[: len(ids)] for row, ids in zip(rows, gold, strict=True)]
        heads = torch.cat(read).to(PRECISIONS[self.precision])
        values = self.output.log_prob(heads, torch.cat(list(gold))).double().cpu().numpy()
        return np.split(values, np.cumsum([len(ids) for ids in gold])[:-1])

    def score_logits(
        self, before: Tensor, states: Tensor, attention: Tensor, gold: Sequence[Tensor]
    ) -> list[np.ndarray]:
        """Return `score_states` by the model as a whole."""
        with autocast(self.device, self.precision):
            rows = self.model(
                encoder_outputs=(states,), attention_mask=attention,
                decoder_input_ids=before, use_cache=False,
            ).logits  # fmt: skip
        return [self.pick(row[: len(ids)], ids) for row, ids in zip(rows, gold, strict=True)]


def split(sentence: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split the ids of a pair into source and target."""
    place = sentence.index(BETWEEN)
    return sentence[:place], sentence[place + 1 :]


# by what the name of transformers' class ends with
KINDS = {
    "": HuggingFace,
    "ForSeq2SeqLM": HuggingFaceTranslation,
    "ForMaskedLM": HuggingFaceMasked,
    "ForCausalLM": HuggingFaceCausal,
}


def choose_kind(spec: LMSpec, config) -> str:
    """Choose one of KINDS by the specification and the model's configuration."""
    if spec.pairs or not spec.head:
        return "ForSeq2SeqLM" if spec.pairs else ""
    masked = (config.architectures or [""])[0].endswith(("ForMaskedLM", "ForPreTraining"))
    return "ForMaskedLM" if masked else "ForCausalLM"


def load_huggingface(spec: LMSpec, computing: Computing) -> HuggingFace:
    """Load `hf:DIR`, a local directory; nothing is fetched, none of its code is run."""
    wanted = "a masked or causal language model" if spec.head else "a model"
    wanted = "a model with encoder and decoder and" if spec.pairs else f"{wanted} with"
    directory = spec.lm.removeprefix(HF)
    kind, model, tokenizer = load_pretrained(
        directory, lambda config: choose_kind(spec, config), f"{wanted} its tokenizer"
    )
    return KINDS[kind](model, tokenizer, spec, computing)
