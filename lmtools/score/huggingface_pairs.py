"""Scorers of local Hugging Face models with encoder and decoder: translations given their
sources.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lmtools.computing import Computing
from lmtools.device import PRECISIONS, autocast
from lmtools.errors import UserError
from lmtools.score.huggingface import TREE, TreeScorer
from lmtools.score.pretrained import first_of, load_pretrained
from lmtools.score.trees import SentenceTree, plan_pairs
from lmtools.specs import HF, LMSpec

BETWEEN = -1  # between source and target; no id of a tokenizer, which may read </s> in a text


def load_huggingface_pairs(spec: LMSpec, computing: Computing) -> "HuggingFaceTranslation":
    """Load the scorer of `hf:DIR`, a local directory with config.json, weights and tokenizer;
    nothing is fetched and no code of the directory runs.
    """
    wanted = "a model with encoder and decoder and its tokenizer"
    model, tokenizer = load_pretrained(
        spec.lm.removeprefix(HF),
        lambda transformers, config: transformers.AutoModelForSeq2SeqLM,
        wanted,
        pairs=True,
    )
    return HuggingFaceTranslation(model, tokenizer, spec, computing)


class HuggingFaceTranslation(TreeScorer):
    """log p of each token of a target and of its end, given a source; what of the vocabulary the
    model was not to produce counts too, as in transformers' own loss.

    Texts are pairs (source, target), a sentence is the ids of the source with what the tokenizer
    adds, BETWEEN, the ids of the target. A source is encoded once for all of its targets, which are
    one tree where `shares` (see TreeScorer), else a batch, as are the sources of one target.
    Neither side may exceed the positions.
    """

    kind = "perplexity"
    pairs = True

    def __init__(self, model, tokenizer, spec: LMSpec, computing: Computing):
        super().__init__(model, tokenizer, spec, computing)
        self.begin = first_of(model.config, "decoder_start_token_id")
        bare, whole = (
            tokenizer(text_target="a", add_special_tokens=added)["input_ids"]
            for added in (False, True)
        )
        if self.begin is None or whole[:-1] != bare:
            raise UserError(
                f"hf:{self.directory}: its targets are not a token to begin with, the text and an"
                " end (but hold a code of the language, for example); give a model such as Marian's"
            )
        self.end = whole[-1]
        self.encoder, decoder = model.get_encoder(), model.get_decoder()
        self.share(decoder, model.get_output_embeddings(), "final_logits_bias", self.encoder)

    def some(self, ids):
        targets = ids, (*ids[:2], *ids[:3]), ids[4:6]
        return [(*ids[3:], self.end, BETWEEN, *target) for target in targets]

    def prepare(self, texts):
        if not texts:  # which the tokenizer does not take
            return []
        sources, targets = ([self.normalise(text[side]) for text in texts] for side in (0, 1))
        read = self.tokenizer(sources)["input_ids"]
        predicted = self.tokenizer(text_target=targets, add_special_tokens=False)["input_ids"]
        result = []
        for text, source, target in zip(texts, read, predicted, strict=True):
            for own, ids in zip(text, (source, [*target, self.end]), strict=True):
                if len(ids) > self.longest:
                    size = f"{len(ids)} tokens and the model {self.longest} positions"
                    raise UserError(f"hf:{self.directory}: {own[:60]!r}... has {size}; drop it")
            result.append((*source, BETWEEN, *target))
        return result

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

    def tree_log_probs(self, sentences):
        if self.shares and len({split(sentence)[0] for sentence in sentences}) == 1:
            return super().tree_log_probs(sentences)
        return self.penalised(sentences, self.decode(sentences, planned=True))

    def token_log_probs(self, sentences):
        return self.decode(sentences)

    def from_logits(self, sentences):
        return self.decode(sentences, logits=True)

    @torch.inference_mode()
    def from_tree(self, sentences):
        tree = SentenceTree.of([split(sentence)[1] for sentence in sentences], self.begin)
        source = torch.tensor([split(sentences[0])[0]], device=self.device)
        ids, depths, mask = self.tree_inputs(tree)
        with autocast(self.device, self.precision):
            states = self.trunk(
                input_ids=ids[None], attention_mask=mask[None, None], cache_position=depths,
                encoder_hidden_states=self.encode(source, torch.ones_like(source)),
                use_cache=False,
            ).last_hidden_state[0]  # fmt: skip
        return self.score_tree(tree, states, self.end)

    def encode(self, ids: Tensor, attention: Tensor) -> Tensor:
        """Return the encoder's states (B, S, D)."""
        return self.encoder(input_ids=ids, attention_mask=attention).last_hidden_state

    @torch.inference_mode()
    def decode(self, sentences, planned=False, logits=False) -> list[np.ndarray]:
        """Score sentences, each by itself: padded to the longer side of all, or, of one source or
        one target (`planned`), each side to its own longest, beside one encoding of what is one
        source. `logits`: in any case by those of the model as a whole.
        """
        sources, targets = zip(*map(split, sentences), strict=True)
        longest = max(len(side) for side in (*sources, *((self.begin, *one) for one in targets)))
        width, once = 0 if planned else longest, planned and len(set(sources)) == 1
        ids, attention = self.pad(sources[:1] if once else sources, width)
        before, _ = self.pad([(self.begin, *target) for target in targets], width)
        gold = [torch.tensor([*target, self.end], device=self.device) for target in targets]
        with autocast(self.device, self.precision):
            states = self.encode(ids, attention)
        if once:
            states, attention = (one.expand(len(sentences), *one.shape[1:])
                                 for one in (states, attention))  # fmt: skip
        result = []
        for some in self.blocks(*before.shape):
            result += self.score_rows(
                before[some], states[some], attention[some], gold[some], logits or not self.shares
            )
        return result

    def score_rows(
        self, before: Tensor, states: Tensor, attention: Tensor, gold: Sequence[Tensor], logits
    ) -> list[np.ndarray]:
        """Score `gold`, tokens and end (T,) each, behind the tokens `before` (B, T)."""
        seen = {"encoder_hidden_states": states, "encoder_attention_mask": attention}
        with autocast(self.device, self.precision):
            if logits:
                made = self.model(
                    encoder_outputs=(states,), attention_mask=attention,
                    decoder_input_ids=before, use_cache=False,
                ).logits  # fmt: skip
            else:
                made = self.trunk(input_ids=before, use_cache=False, **seen).last_hidden_state
        rows = [row[: len(own)] for row, own in zip(made, gold, strict=True)]
        if logits:
            return [self.pick(row, own) for row, own in zip(rows, gold, strict=True)]
        states = torch.cat(rows).to(PRECISIONS[self.precision])
        values = self.output.log_prob(states, torch.cat(list(gold))).double().cpu().numpy()
        return np.split(values, np.cumsum([len(own) for own in gold])[:-1])

    def pad(self, sides: Sequence[Sequence[int]], width: int) -> tuple[Tensor, Tensor]:
        """Ids, right-padded to `width` positions or more, and where they are, (B, T) both."""
        rows = [torch.tensor(side) for side in sides]
        rows.append(torch.zeros(width, dtype=torch.int64))  # as wide as wanted, and left out
        ids = pad_sequence(rows, batch_first=True, padding_value=self.end)[:-1]
        real = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)[:-1]
        return ids.to(self.device), real.to(self.device)


def split(sentence: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split the ids of a pair into source and target."""
    place = sentence.index(BETWEEN)
    return sentence[:place], sentence[place + 1 :]
