"""Neural models of `lmtools train` as scorers: of texts in one pass or masked, of words from both
sides, of translations given their sources.
"""

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.base.windows import count_rows
from lmtools.models.base import Trunk
from lmtools.models.device import (
    PRECISIONS,
    autocast,
    batch_rows,
    choose_device,
    numerics,
    resolve_precision,
)
from lmtools.models.engine import describe_engine, prepare, resolve_engine
from lmtools.models.engine.onnx import OnnxScores, refuse_graph
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import Examples, pad_sentences, split_pair
from lmtools.models.outputs.base import in_precision
from lmtools.models.seq2seq import Decoding
from lmtools.score.base import BatchStates, Scorer
from lmtools.score.neural_prefixes import NeuralPrefixes
from lmtools.score.nodes import score_nodes
from lmtools.score.trees import SentenceTree, plan_pairs, plan_trees
from lmtools.text.subword import BOS, EOS, MASK, UNK
from lmtools.version import __version__


class NeuralScorer(Scorer):
    """A model trained by `lmtools train`: causal and T-TA models in one pass, masked ones by
    pseudo-log-likelihood.

    `intact` scores a masked model in one pass over the intact input instead (a variant in the T-TA
    paper: each token sees itself). Sentences that do not fit the positions are scored in
    overlapping windows, each token where it has most context. With `normalise` none a token's score
    is log p up to normalisation (`output.unnormalised`), without a pass over the vocabulary.
    `output` is the output layer with its matrices in the precision of matrix products. An engine
    (lmtools.models.engine) that is not torch changes `lm` for good.
    """

    def __init__(
        self, lm: LanguageModel, subword, identity: str, spec: LMSpec, computing: Computing
    ):
        self.spec, self.device = spec, choose_device(computing.device)
        self.precision = resolve_precision(computing.precision, self.device, integers=True)
        self.normalised = spec.normalise == "full"
        refused = refuse_graph(lm, self.normalised)
        self.engine = resolve_engine(computing.engine, self.precision, self.device, refused)
        self.parameters = sum(parameter.numel() for parameter in lm.parameters())
        self.rows = batch_rows(computing.rows, self.device)
        self.lm, self.subword = lm.to(self.device).eval(), subword
        self.output = (
            prepare(self.lm, self.precision)
            if self.engine == "prepared"
            else in_precision(self.lm.output, PRECISIONS[self.precision])
        )
        self.longest, self.depth = lm.longest, lm.trunk.depth
        self.boundary, self.masks = (1, lm.objective.boundary - 1), lm.trunk.masks
        self.masked = lm.trunk.masks and not spec.intact
        self.graph = None
        self.left_to_right = lm.objective.name == "causal"
        self.kind = "perplexity" if self.left_to_right else "pseudo-perplexity"
        self.criterion = lm.settings.criterion
        self.signature = {
            "lm": lm.settings.model + ("-intact" if spec.intact else ""), "model": identity[:16],
            "vocabulary": subword.hash[:16],
            "version": __version__, **numerics(self.precision, self.device, self.rows),
            **describe_engine(self.engine, self.precision),
            **({} if self.normalised else {"normalise": "none"}),
        }  # fmt: skip
        if self.engine == "onnx":
            self.use_graph()

    def use_graph(self) -> None:
        """Score by ONNX Runtime, which is as fast with one sentence as with many."""
        self.engine, self.rows = "onnx", 1
        self.graph = OnnxScores(self.lm, self.precision, self.masked)
        numbers = numerics(self.precision, self.device, self.rows)
        self.signature = {
            **self.signature, **numbers, **describe_engine(self.engine, self.precision)
        }  # fmt: skip

    def live(self):
        exact = self.engine == "torch" and self.precision == "float32"
        if not exact or self.device.type != "cpu" or refuse_graph(self.lm, self.normalised):
            return self
        scorer = copy.copy(self)
        scorer.use_graph()
        return scorer

    def normalise(self, text):
        return self.subword.normaliser(text)

    def prepare(self, texts):
        return [tuple(ids) for ids in self.subword.encode_batch(texts)]

    def cost(self, sentence):
        return count_rows(len(sentence), self.longest, sum(self.boundary), self.masked)

    def unknown(self, sentence):
        return np.array(sentence, dtype=np.int64) == UNK

    def token_names(self, sentence):
        return [self.subword.vocabulary[i] for i in sentence]

    def token_log_probs(self, sentences):
        return self.compute(sentences, self.score)

    def plan_trees(self, sentences):
        """Plan trees on a CPU, where it was measured, of left-to-right models with a memory."""
        if len(sentences) < 2 or (self.graph and self.precision == "int8"):
            return []
        remembers = type(self.lm.trunk).memory is not Trunk.memory
        if self.device.type != "cpu" or not (self.left_to_right and remembers):
            return []
        return plan_trees(sentences, self.lm.trunk.tree_tokens, self.longest)

    @torch.inference_mode()
    def from_tree(self, sentences):
        tree = self.tree_of(sentences)
        with autocast(self.device, self.precision):
            heads = self.lm.trunk.head(self.tree_states(sentences, tree))
        heads = heads.to(PRECISIONS[self.precision])
        return score_nodes(tree, heads, self.output, EOS, normalised=self.normalised)

    def grow_prefixes(self):
        if self.graph and self.precision == "int8":
            raise UserError(f"{self.source}: int8 of ONNX Runtime scores texts; leave --engine out")
        return NeuralPrefixes(self)

    def tree_of(self, sentences) -> SentenceTree:
        """Return the tree of the predicted tokens of sentences."""
        return SentenceTree.of(sentences, BOS)

    def tree_states(self, sentences, tree: SentenceTree) -> Tensor:
        """Return the last layer's states (N, columns) of the nodes of the sentences' tree."""
        return self.lm.trunk.memory().grow(np.append(-1, tree.parents[1:]), tree.tokens)

    def score(self, heads: Tensor, targets: Tensor) -> Tensor:
        """Return the score of each target (N,) in nats."""
        score = self.output.log_prob if self.normalised else self.output.unnormalised
        return score(heads, targets)

    def compute(self, sentences, what: Callable[[Tensor, Tensor], Tensor]) -> list[np.ndarray]:
        """Compute a function of states (N, D) and targets (N,) for each token and end of sentence;
        return an array (tokens + 1, ...) a sentence.
        """
        pieces = [self.windows(s) for s in sentences]
        parts = [
            self.window(s, begin, end)
            for s, cuts in zip(sentences, pieces, strict=True)
            for begin, end, _, _ in cuts
        ]
        values = iter(self.one_pass(parts, what))
        return [
            np.concatenate([next(values)[first:last] for _, _, first, last in cuts])
            for cuts in pieces
        ]

    @torch.inference_mode()
    def one_pass(self, sentences, what=None) -> list[np.ndarray]:
        """Compute `what`, by default the scores, of sentences that fit the positions."""
        if self.graph and what in (None, self.score):
            return [self.graph.log_probs(sentence) for sentence in sentences]
        examples = self.lm.objective.scoring(sentences).to(self.device)
        with autocast(self.device, self.precision):
            heads = self.lm.trunk.head(self.predicting_states(examples))
        values = (what or self.score)(heads.to(PRECISIONS[self.precision]), examples.targets)
        return self.split_values(values.double().cpu().numpy(), sentences)

    def split_values(self, values: np.ndarray, sentences) -> list[np.ndarray]:
        """Return the values of each sentence's targets, (tokens + 1, ...)."""
        return np.split(values, np.cumsum([len(s) + 1 for s in sentences])[:-1])

    def states(self, sentences, layers, masked=False):
        if self.depth is None:
            return super().states(sentences, layers, masked)
        if self.graph:
            raise UserError(f"{self.source}: vectors are made in torch; leave --engine out")
        examples = self.lm.objective.scoring(sentences).to(self.device)
        states = self.lm.trunk.chosen_states(examples.read, layers, MASK if masked else None)
        return BatchStates(states, examples.lengths)

    def spans(self, sentence, words):
        spans = list(map(len, self.subword.segment(words)))
        # characters have a mark between two words, which counts with the second
        if len(sentence) == sum(spans) + len(spans) - 1:
            spans[1:] = [span + 1 for span in spans[1:]]
        return spans if sum(spans) == len(sentence) else [len(sentence)]

    def predicting_states(self, examples: Examples) -> Tensor:
        """Return the states (N, D) that predict the targets."""
        if not self.masked:
            return self.lm.states(examples)
        inputs, lengths = examples.inputs, examples.lengths
        states = [None] * len(inputs)
        # sentences of one length go through together, without padding
        for length in lengths.unique().tolist():
            rows = (lengths == length).nonzero()[:, 0]
            masked = self.lm.trunk.masked_states(inputs[rows, :length], MASK)
            for i, state in zip(rows.tolist(), masked, strict=True):
                states[i] = state[1:]  # (T-1, D): the beginning of sentence is not scored
        return torch.cat(states)


class TwoWayScorer(NeuralScorer):
    """A model that predicts each word from the left and, apart from that, from the right: the mean
    of both log-probabilities.

    Each direction alone gives a sentence a probability; the mean is the logarithm of their
    geometric mean, and exp of its negative mean over words and ends is the perplexity that ELMo's
    authors print. A sentence is its piece ids; what has a score are its words.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.kind = "two-way perplexity"

    def cost(self, sentence):
        return 2 * (self.positions(sentence) + sum(self.boundary))

    def positions(self, sentence):
        return len(self.subword.words.split(sentence))

    def spans(self, sentence, words):
        return [1] * self.positions(sentence)

    def unknown(self, sentence):
        words = self.subword.words
        return np.array([words.id_of(word) == UNK for word in words.split(sentence)], dtype=bool)

    def token_names(self, sentence):
        spellings = self.subword.words.split(sentence)
        return ["".join(super(TwoWayScorer, self).token_names(spelling)) for spelling in spellings]

    def split_values(self, values, sentences):
        bounds = np.cumsum([2 * (len(self.unknown(s)) + 1) for s in sentences])[:-1]
        parts = np.split(values, bounds)
        return [average_directions(*np.split(part, 2)) for part in parts]


class TranslationScorer(NeuralScorer):
    """A translation model: log p of a target sentence given its source.

    Texts are pairs (source, target), a sentence is the one sequence of ids that stands for both;
    what has a score are the tokens of the target and its end. Targets of one source are one tree,
    beside which the source is encoded once; sources of one target go through together, without
    padding. A target that does not fit the positions is scored in windows, each with the whole
    source; a source that does not is refused.
    """

    pairs = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.kind, self.depth = "perplexity", None

    def prepare(self, texts):
        sources, targets = (self.subword.encode_batch([t[side] for t in texts]) for side in (0, 1))
        for ids, (text, _) in zip(sources, texts, strict=True):
            if len(ids) > self.longest:
                raise UserError(
                    f"{text[:40]!r} ...: a source of {len(ids)} tokens, the model reads at most"
                    f" {self.longest}; leave it out or train with a larger arch.positions"
                )
        return [(*source, EOS, *target) for source, target in zip(sources, targets, strict=True)]

    def knows(self, word):
        return self.subword.knows(word)

    def cost(self, sentence):
        # both sides are padded to the longer one: equal costs are equal shapes
        source, target = split_pair(sentence)
        width = max(len(source), min(len(target), self.longest)) + sum(self.boundary)
        return 2 * len(self.windows(sentence)) * width

    def plan_trees(self, sentences):
        pairs = [split_pair(sentence) for sentence in sentences]
        return plan_pairs(pairs, self.lm.trunk.tree_tokens, self.longest)

    def from_tree(self, sentences):
        sources, targets = zip(*map(split_pair, sentences), strict=True)
        if len(set(sources)) == 1:
            return super().from_tree(sentences)
        return self.from_sources(sources, targets[0])

    @torch.inference_mode()
    def from_sources(self, sources, target) -> list[np.ndarray]:
        """Score one target given each of its sources, in the order of their lengths."""
        read, given, gold = (
            [torch.tensor(ids, device=self.device) for ids in side]
            for side in ([(*source, EOS) for source in sources], [(BOS, *target)], [(*target, EOS)])
        )
        with autocast(self.device, self.precision):
            states = self.lm.trunk.shared_states(read, given[0])
            heads = self.lm.trunk.head(states.flatten(0, 1))
        scores = self.score(heads.to(PRECISIONS[self.precision]), gold[0].repeat(len(read)))
        return list(scores.view(len(read), -1).double().cpu().numpy())

    def tree_of(self, sentences):
        return super().tree_of([split_pair(sentence)[1] for sentence in sentences])

    def tree_states(self, sentences, tree):
        within, source = tree.ancestors(), split_pair(sentences[0])[0]
        read = np.array([*source, EOS]), tree.tokens, within.sum(1) - 1, within
        return self.lm.trunk.tree_states(
            *(torch.from_numpy(array).to(self.device) for array in read)
        )

    def decode(self, sources: Sequence[Sequence[int]]) -> Decoding:
        """Return the decoding of sources, ids without the end, for a search."""
        read = pad_sentences(sources, [], [EOS])
        with autocast(self.device, self.precision):
            return self.lm.trunk.decoding(*(torch.from_numpy(x).to(self.device) for x in read))

    def next_heads(self, decoding: Decoding, tokens: Tensor, parents: Tensor) -> Tensor:
        """Return the states (B K, width), ready for `output`, after prefixes that are the parents
        (B, K) of the last call and `tokens` (B, K).
        """
        with autocast(self.device, self.precision):
            heads = self.lm.trunk.head(decoding.step(tokens, parents).flatten(0, 1))
        return heads.to(PRECISIONS[self.precision])

    def unknown(self, sentence):
        return super().unknown(split_pair(sentence)[1])

    def token_names(self, sentence):
        return super().token_names(split_pair(sentence)[1])

    def windows(self, sentence):
        return super().windows(split_pair(sentence)[1])

    def window(self, sentence, begin, end):
        source, target = split_pair(sentence)
        return (*source, EOS, *target[begin:end])

    def split_values(self, values, sentences):
        return super().split_values(values, [split_pair(sentence)[1] for sentence in sentences])


def average_directions(from_left: np.ndarray, from_right: np.ndarray) -> np.ndarray:
    """Average both directions for each word and, last, the end: from the left the end is last, from
    the right it is first.
    """
    return (from_left + np.roll(from_right, -1, axis=0)) / 2
