"""Neural models of `lmtools train` as scorers of texts, in one pass or masked."""

import copy
from collections.abc import Callable
from functools import cached_property

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
from lmtools.models.objectives import Examples
from lmtools.models.outputs.base import in_precision
from lmtools.models.ragged import Ragged, rows_agree
from lmtools.score.base import BatchStates, Scorer
from lmtools.score.neural_prefixes import NeuralPrefixes
from lmtools.score.nodes import score_nodes
from lmtools.score.trees import SentenceTree, plan_trees
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

    @cached_property
    def ragged(self):
        """Whether sentences of any lengths go through in one matrix: on a CPU, a Transformer in one
        pass, where a row's bits do not depend on the others. With one row a batch each is alone.
        """
        able = self.lm.trunk.ragged and not self.masked and self.device.type == "cpu"
        if not able or self.rows == 1:
            return False
        with autocast(self.device, self.precision):
            return rows_agree(self.lm.trunk, self.output, PRECISIONS[self.precision])

    @torch.inference_mode()
    def one_pass(self, sentences, what=None) -> list[np.ndarray]:
        """Compute `what`, by default the scores, of sentences that fit the positions."""
        if self.graph and what in (None, self.score):
            return [self.graph.log_probs(sentence) for sentence in sentences]
        examples = self.lm.objective.scoring(sentences).to(self.device)
        count = len(examples.targets)
        if self.ragged:
            examples = Ragged.of(examples)
        with autocast(self.device, self.precision):
            heads = self.lm.trunk.head(self.predicting_states(examples))
        values = (what or self.score)(heads.to(PRECISIONS[self.precision]), examples.targets)
        return self.split_values(values[:count].double().cpu().numpy(), sentences)

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

    def predicting_states(self, examples: Examples | Ragged) -> Tensor:
        """Return the states (N, D) that predict the targets."""
        if isinstance(examples, Ragged):
            return self.lm.trunk.ragged_states(examples)[examples.rows]
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
