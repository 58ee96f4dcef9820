"""Neural models of `lmtools train` as scorers of texts, in one pass or masked, and of the word
prefixes of an utterance, if they are left-to-right.
"""

import copy
import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lmtools.base.batching import count_rows
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pair
from lmtools.base.specs import LMSpec
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
from lmtools.models.memory import TOGETHER, Rows, TokenTree
from lmtools.models.objectives import count_targets, excluded_ids
from lmtools.models.outputs.base import in_precision
from lmtools.models.outputs.noise import NOISES
from lmtools.models.outputs.sampled import SAMPLED
from lmtools.models.ragged import Ragged, rows_agree
from lmtools.score.base import BatchStates, Scorer, WordPrefixes
from lmtools.score.trees import SentenceTree, plan_trees, score_nodes
from lmtools.text.corpus import Corpus
from lmtools.text.subword import BOS, EOS, MASK, UNK
from lmtools.version import __version__

SCORED = 1 << 14  # predictions that are scored at once


class NeuralPrefixes(WordPrefixes):
    """The prefixes of one utterance under a neural left-to-right model: a tree of tokens.

    A node's state and log-normaliser are computed when something after it is first asked for, all
    that a call needs in one batch; there is no normaliser where the scorer does not normalise.
    Memory: that of the tree, and 4 bytes for each computed state. Scores equal
    `NeuralScorer.log_probs` summed over a word, as far as the sentence fits the positions; beyond,
    prefixes forget as TokenTree says: `NeuralScorer` has windows of the same stride, but goes over
    to the next one earlier.
    """

    def __init__(self, scorer):
        super().__init__(scorer)
        self.tree = TokenTree(scorer.lm.trunk, scorer.lm.longest, scorer.precision)
        self.normalisers = Rows(1, scorer.device)

    def grow(self, nodes: list[int], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        before, tokens, pairs, longer = [], [], [], []
        for pair, (node, word) in enumerate(zip(nodes, words, strict=True)):
            for token in self.known.tokens(word, node == self.start):
                before.append(node)
                tokens.append(token)
                pairs.append(pair)
                node = self.tree.child(node, token)
            longer.append(node)
        log_p = np.bincount(
            np.array(pairs, dtype=np.int64), self.log_probs(before, tokens), len(words)
        )
        return log_p, np.array(longer, dtype=np.int64)

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """See lmtools.lattice.expand.Prefixes."""
        return self.log_probs(nodes.tolist(), [EOS] * len(nodes))

    @torch.inference_mode()
    def log_probs(self, nodes: list[int], tokens: list[int]) -> np.ndarray:
        """Return log p(token | prefix) of N pairs, float64 (N,)."""
        if not nodes:
            return np.zeros(0)
        output, dtype = self.scorer.output, PRECISIONS[self.scorer.precision]
        rows = self.tree.compute(nodes)
        heads, targets = self.tree.heads.values, torch.tensor(tokens, device=rows.device)
        parts = zip(rows.split(SCORED), targets.split(SCORED), strict=True)
        result = torch.cat(
            [output.unnormalised(heads[row].to(dtype), target) for row, target in parts]
        )
        if self.scorer.normalised:
            result = result - self.log_normalisers()[rows]
        if not result.isfinite().all():
            raise UserError(
                f"{self.scorer.signature['lm']}: scores a word NaN or infinite; the model is"
                " damaged, train it again"
            )
        return result.double().cpu().numpy()

    def log_normalisers(self) -> torch.Tensor:
        """Return the log-normalisers of all computed states of the tree (rows,)."""
        heads, known = self.tree.heads, self.normalisers.count
        for block in heads.values[known : heads.count].split(TOGETHER):
            first = self.normalisers.add(len(block))
            values = self.scorer.output.log_normaliser(block.to(PRECISIONS[self.scorer.precision]))
            self.normalisers.values[first : self.normalisers.count, 0] = values
        return self.normalisers.values[:, 0]


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
        self.masked = lm.masked and not spec.intact
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
        return SentenceTree.of(sentences, BOS)

    def tree_states(self, sentences, tree: SentenceTree) -> Tensor:
        """Return the last layer's states (N, columns) of the nodes of the sentences' tree."""
        return self.lm.trunk.memory().grow(np.append(-1, tree.parents[1:]), tree.tokens)

    def score(self, heads: Tensor, targets: Tensor) -> Tensor:
        """Return the score of each target (N,) in nats."""
        score = self.output.log_prob if self.normalised else self.output.unnormalised
        return score(heads, targets)

    @torch.inference_mode()
    def compute(
        self, sentences, what: Callable[[Tensor, Tensor], Tensor] | None = None
    ) -> list[np.ndarray]:
        """Compute scores, or another function, of each token and end; (tokens + 1, ...) each."""
        what = what or self.score
        pieces = [self.windows(sentence) for sentence in sentences]
        parts = [
            self.window(sentence, begin, end)
            for sentence, cuts in zip(sentences, pieces, strict=True)
            for begin, end, _, _ in cuts
        ]
        if self.graph and what == self.score:
            values = [self.graph.log_probs(part) for part in parts]
        else:
            examples = self.lm.objective.scoring(parts).to(self.device)
            count = len(examples.targets)
            with autocast(self.device, self.precision):
                if self.ragged:
                    examples = Ragged.of(examples)
                    states = self.lm.trunk.ragged_states(examples)[examples.rows]
                else:
                    states = self.lm.predicting_states(examples, self.masked)
                heads = self.lm.trunk.head(states)
            values = what(heads.to(PRECISIONS[self.precision]), examples.targets)
            values = self.split_values(values[:count].double().cpu().numpy(), parts)
        left = iter(values)
        return [
            np.concatenate([next(left)[first:last] for _, _, first, last in cuts])
            for cuts in pieces
        ]

    token_log_probs = compute

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
        pairs = (np.split(part, 2) for part in np.split(values, bounds))
        # from the left the end is last, from the right it is first
        return [(left + np.roll(right, -1, axis=0)) / 2 for left, right in pairs]


POWER = 0.75  # of the counts of unigram noise


def correct_by(lm: LanguageModel, subword, spec: str) -> str:
    """Let outputs be corrected by the noise of `spec`, KIND=F: KIND over targets' counts in the
    corpus F, unigram to the POWER; return what identifies it. UserError for a criterion without
    noise, or a corpus of another vocabulary.
    """
    kind, path = parse_pair(spec, "noise", "KIND=F.bin", f"KIND is one of {', '.join(NOISES)}")
    if kind not in NOISES:
        raise UserError(f"noise={spec}: no noise {kind!r}; known: {', '.join(NOISES)}")
    if not getattr(lm.output, "corrected", False):
        able = ", ".join(name for name, output in SAMPLED.items() if output.corrected)
        raise UserError(
            f"noise={spec}: scores of a model trained with {lm.settings.criterion} have no noise"
            f" in them, those of {able} have; leave noise out"
        )
    corpus = Corpus.open(path).check_pairs(lm.objective.pairs, f"noise={kind}")
    if corpus.subword.hash != subword.hash:
        raise UserError(
            f"{path}: binarised with another vocabulary than the model's; give the corpus that the"
            " model was trained on"
        )
    counts = count_targets(lm.objective, corpus, len(lm.output.noise))
    noise = NOISES[kind](counts, excluded_ids(lm.objective), POWER)
    lm.output.correct_by(noise)
    return f"{kind} {hashlib.sha256(noise.probability.tobytes()).hexdigest()[:16]}"
