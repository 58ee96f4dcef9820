"""Training from N-best lists with references: the model's score of a hypothesis joins its
first-pass scores, and the loss is the errors that the distribution over the list expects, which
these sums make (MWER, Prabhavalkar et al. 2018). Errors of a hypothesis count up to the words of
its reference, so that loops do not outweigh all else. Validation counts all errors of those that
win.
"""

import functools
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from lmtools.base.errors import UserError
from lmtools.evaluate.nbest import fill_empty, nbest_errors
from lmtools.formats import read
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Lists
from lmtools.text.subword import Subword, load_subword
from lmtools.train.batches import cut_lengths, plan_epoch
from lmtools.train.corrupt import Corruptor
from lmtools.train.parallel import World
from lmtools.types import TOTAL, Hypothesis, NBest

MOST = 8192  # tokens that are computed at a time, which bounds memory


class Errors(NamedTuple):
    """A list to learn from: texts, sums of first-pass scores and errors (hypotheses,), and the most
    errors that one counts with.
    """

    texts: tuple[str, ...]
    totals: np.ndarray
    errors: np.ndarray
    most: int


class ListFile:
    """The lists of a file, ready to learn from: `lists`, their references and utterances."""

    def __init__(self, path, settings: Lists, subword: Subword):
        self.path, self.settings, self.subword = Path(path), settings, subword
        nbests = [fill_empty(nbest) for nbest in read(path)]
        if not nbests:
            raise UserError(f"{path}: no utterances; give N-best lists with references")
        missing = next((nbest.utt for nbest in nbests if nbest.ref is None), None)
        if missing is not None:
            raise UserError(
                f"{path}: utterance {missing!r} has no reference; attach them with lmtools convert"
                " --ref"
            )
        errors, self.words = nbest_errors(nbests)
        weights = settings.weights if settings.weights is not None else usual_weights(nbests)
        self.utts = [nbest.utt for nbest in nbests]
        self.refs = [nbest.ref for nbest in nbests]
        self.lists = [
            Errors(
                tuple(hyp.text for hyp in nbest.hyps),
                np.array([sum_scores(hyp, weights, path, nbest.utt) for hyp in nbest.hyps]),
                counts,
                max(1, words),
            )
            for nbest, counts, words in zip(nbests, errors, self.words.tolist(), strict=True)
        ]
        confusions = settings.confusions
        self.corruptor = Corruptor.read(confusions, settings.sample) if confusions else None

    def __len__(self) -> int:
        return len(self.lists)

    def digest(self) -> str:
        """Return the hexadecimal SHA-256 of what training sees of the file."""
        hashed = hashlib.sha256(repr(self.corruptor and self.corruptor.table).encode())
        for ref, row in zip(self.refs, self.lists, strict=True):
            hashed.update(repr((ref, row.texts)).encode())
            hashed.update(row.totals.tobytes() + row.errors.tobytes())
        return hashed.hexdigest()

    @functools.cached_property
    def ids(self) -> dict[str, np.ndarray]:
        """The token ids of each text."""
        texts = list({text for row in self.lists for text in row.texts})
        return dict(zip(texts, map(np.asarray, self.subword.encode_batch(texts)), strict=True))

    def encode(self, texts: Sequence[str], longest: int) -> list[np.ndarray]:
        """Return ids of each text, cut after `longest`."""
        new = [text for text in texts if text not in self.ids]
        more = dict(zip(new, map(np.asarray, self.subword.encode_batch(new)), strict=True))
        return [(self.ids[t] if t in self.ids else more[t])[:longest] for t in texts]


def open_lists(settings: Lists, paths, init, also) -> list[ListFile]:
    """Return the lists of each path, for the vocabulary of the model `init`."""
    if init is None:
        raise UserError(f"lists.loss: {settings.loss} goes on from a trained model; give --init LM")
    if also:
        raise UserError("--also-valid: measures text, and lists.loss trains from lists; drop it")
    subword = load_subword(Path(init) / "subword")
    return [ListFile(path, settings, subword) for path in paths]


def usual_weights(nbests: Sequence[NBest]) -> dict[str, float]:
    """Return the weights of lists for which none were given."""
    hyps = [hyp for nbest in nbests for hyp in nbest.hyps if hyp.text]
    known = [name for name in (TOTAL, "am") if all(name in hyp.scores for hyp in hyps)]
    return dict.fromkeys(known[:1], 1.0)


def sum_scores(hyp: Hypothesis, weights: Mapping[str, float], path, utt: str) -> float:
    """Return the weighted sum of a hypothesis's first-pass scores; UserError where one lacks."""
    total = 0.0
    for name, weight in weights.items():
        if name == "words" and name not in hyp.scores:
            total += weight * len(hyp.text.split())
        elif name in hyp.scores:
            total += weight * hyp.scores[name]
        elif hyp.text:
            raise UserError(
                f"{path}: a hypothesis of utterance {utt!r} has no score {name!r}; give"
                f" lists.weights for those that it has ({', '.join(hyp.scores) or 'none'})"
            )
    return total


class ListBatches:
    """Batches of whole lists for a model, as lmtools.train.batches.Sentences of text: a function
    of (lists, seed, epoch). `world` shares each batch among processes, list by list.
    """

    too_long, cuts, measure = 0, None, "errors a word"

    def __init__(self, file: ListFile, plan, seed: int, world: World, lm: LanguageModel):
        self.file, self.seed, self.world = file, seed, world
        self.settings, self.batch = plan.settings.lists, plan.settings.step_batch
        self.longest, self.boundary = lm.longest, lm.objective.boundary
        self.learning = file is plan.train
        if self.learning:  # of equal errors nothing can be learnt
            self.numbers = [n for n, row in enumerate(file.lists) if np.ptp(row.errors)]
        else:
            self.numbers = list(range(len(file)))
        if not self.numbers:
            raise UserError(
                f"{file.path}: in no list do the errors of hypotheses differ; give lists with"
                " several hypotheses"
            )
        sizes = (
            [len(ids) + self.boundary for ids in file.encode(file.lists[n].texts, self.longest)]
            for n in self.numbers
        )
        self.rows = np.array([len(lengths) * max(lengths) for lengths in sizes])
        self.per_epoch = len(cut_lengths(np.sort(self.rows), self.batch, 0)) + 1
        self.plan = functools.lru_cache(1)(
            lambda epoch: plan_epoch(self.rows, self.batch, boundary=0, seed=self.seed, epoch=epoch)
        )

    def at(self, step: int) -> np.ndarray:
        """Return the numbers (N,) of the lists of a step's batch."""
        epoch, index = divmod(step, self.per_epoch)
        return self.plan(epoch)[index]

    def tokens(self, chosen: np.ndarray) -> int:
        """Return the tokens of a batch, with padding."""
        return int(self.rows[chosen].sum())

    def place(self, step: int) -> str:
        utts = [self.file.utts[self.numbers[i]] for i in self.at(step)[:8]]
        return f"lists of {', '.join(utts)}{' ...' if len(self.at(step)) > 8 else ''}"

    def parts(
        self, lm: LanguageModel, chosen: np.ndarray, generator: np.random.Generator
    ) -> list[tuple[list[Errors], int]]:
        """Return this process's share of a batch in the parts that go through the model one after
        the other, none of them empty, and the number of lists of each; without gradients the words
        of their references.
        """
        base, count = int(generator.integers(1 << 62)), lm.settings.accumulate
        numbers = [self.numbers[i] for i in chosen[self.world.rank :: self.world.size]]
        parts = [part for first in range(count) if (part := numbers[first::count])]
        if not torch.is_grad_enabled():
            words = self.file.words
            return [([self.file.lists[n] for n in part], int(words[part].sum())) for part in parts]
        drawn = [[(n, np.random.default_rng([base, n])) for n in part] for part in parts]
        lists = [[row for pair in part for row in self.augment(*pair)] for part in drawn]
        return [(part, len(part)) for part in lists]

    def loss(self, lm: LanguageModel, part: Sequence[Errors], device: torch.device) -> Tensor:
        """Return the summed loss of a part; without gradients the errors of those that win."""
        totals, errors = pad(part, self.score(lm, part, device) * self.settings.scale)
        if not torch.is_grad_enabled():
            best = totals.argmax(1, keepdim=True)
            return errors.gather(1, best).sum()
        errors = errors.minimum(torch.tensor([[float(row.most)] for row in part], device=device))
        return expect_errors(totals, errors).sum()

    def augment(self, number: int, draw: np.random.Generator) -> list[Errors]:
        """Return the list as a step sees it, and one of its corrupted reference."""
        row, most = self.file.lists[number], self.settings.sample
        if most is not None and len(row.texts) > most:
            best = int(row.errors.argmin())
            others = np.delete(np.arange(len(row.texts)), best)
            kept = np.sort(np.append(draw.choice(others, most - 1, replace=False), best))
            texts = tuple(row.texts[i] for i in kept)
            row = Errors(texts, row.totals[kept], row.errors[kept], row.most)
        if self.file.corruptor is None:
            return [row]
        texts, errors = self.file.corruptor.draw(self.file.refs[number], draw)
        made = Errors(texts, np.zeros(len(texts)), errors, row.most)
        return [row, made] if len(texts) > 1 else [row]

    def score(self, lm: LanguageModel, lists: Sequence[Errors], device) -> Tensor:
        """Return the model's score of each hypothesis of the lists, one after the other."""
        texts = list(itertools.chain.from_iterable(row.texts for row in lists))
        sentences = self.file.encode(texts, self.longest)
        ends = np.cumsum([len(ids) + 1 for ids in sentences])
        if ends[-1] <= MOST:
            return score_sentences(lm, sentences, device)
        # in parts, whose inside is computed once more on the way back and not kept
        places = np.searchsorted(ends, range(MOST, int(ends[-1]), MOST), side="right")
        cuts = np.unique([0, *places, len(sentences)])
        parts = (sentences[begin:end] for begin, end in itertools.pairwise(cuts))
        again = {"use_reentrant": False}
        return torch.cat([checkpoint(score_sentences, lm, p, device, **again) for p in parts])


def score_sentences(lm: LanguageModel, sentences: Sequence[np.ndarray], device) -> Tensor:
    """Return the score of each sentence of ids, float32 (sentences,), as `lmtools score` has it."""
    examples = lm.objective.scoring(sentences).to(device)
    owner = np.repeat(np.arange(len(sentences)), [len(ids) + 1 for ids in sentences])
    values = lm.log_probs(examples).float()
    sums = torch.zeros(len(sentences), device=device)
    return sums.index_add(0, torch.from_numpy(owner).to(device), values)


def pad(lists: Sequence[Errors], scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return sums of first pass and `scores`, -inf at padding; and errors, each (L, H)."""
    lengths = np.array([len(row.texts) for row in lists])
    valid = torch.from_numpy(np.arange(lengths.max()) < lengths[:, None]).to(scores.device)
    # only differences within a list count; less its greatest, float32 holds them
    first = np.concatenate([row.totals - row.totals.max() for row in lists])
    errors = torch.zeros(valid.shape, device=scores.device)
    errors[valid] = torch.from_numpy(np.concatenate([row.errors for row in lists])).to(errors)
    totals = torch.full(valid.shape, -torch.inf, device=scores.device)
    return totals.masked_scatter(valid, torch.from_numpy(first).to(scores) + scores), errors


def expect_errors(totals: Tensor, errors: Tensor) -> Tensor:
    """Return the expected errors of each list, (lists,)."""
    return (totals.softmax(1) * errors).sum(1)
