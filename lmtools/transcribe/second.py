"""The second pass: language models, loaded once, choose among the alternatives of each segment."""

import contextlib
import itertools
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lmtools.api.lm import LM, load
from lmtools.api.weights import rescore
from lmtools.base.doors import find_doors, open_door
from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.base.seal import digest
from lmtools.base.specs import list_points
from lmtools.formats.edits import merge_equal, rewrite_list
from lmtools.rescoring.defaults import OF_WHISPER, PREFIX, WHISPER, is_default
from lmtools.rescoring.features import LENGTHS, summed
from lmtools.rescoring.risk import posterior
from lmtools.rescoring.weights import Weights
from lmtools.score.lists import WRITTEN
from lmtools.text.normaliser import parse_normaliser
from lmtools.types import EAR, PHRASES, TOTAL, NBest, ScoreTable

ENGLISH = ("en-books-4gram", "en-small")  # the first that is installed is taken without --lm
NAMED = re.compile(r"([\w.-]+)=(.+)")  # NAME=LM
OWN = {*OF_WHISPER, *LENGTHS, "rank", PHRASES}  # features that no language model brings
WRITING = "librispeech"  # how hypotheses are written for language models


def find_english() -> list[str]:
    """Return the name of the installed English 4-gram, in a list that is empty without any."""
    installed = {point.name for point in list_points()}
    return [name for name in ENGLISH if name in installed][:1]


class SecondPass:
    """Language models by name, weights, and perhaps a glossary and an ear; nothing of them changes
    a list if there is none of them. UserError for what cannot be loaded or does not fit.
    """

    def __init__(
        self,
        lms: Sequence[str] | Mapping[str, LM],
        weights=None,
        phrases=None,
        normaliser: str = WRITING,
        ear=None,
    ):
        self.ear = ear
        self.normalise = parse_normaliser(normaliser)
        self.written, self.told = normaliser, set()
        specs = dict(lms if isinstance(lms, Mapping) else map(name_model, lms))
        if len(specs) < len(lms):
            raise UserError(f"--lm {lms[-1]}: two models of one name; write --lm NAME=LM")
        default = PREFIX + (WHISPER if lms or not phrases else PHRASES)
        self.weights = default if weights is None else weights
        if not isinstance(self.weights, Weights) and not is_default(self.weights):
            self.weights = Weights.load(self.weights)
        self.glossary = None
        if phrases is not None:
            self.glossary = open_door("phrases", "column:find_glossary", "--phrases")(phrases)
            if self.glossary.spec.spelling is None:
                spec = replace(self.glossary.spec, spelling=True)
                self.glossary = replace(self.glossary, spec=spec)
        self.columns = match_columns(specs, self.weights, ear is not None)
        self.lms: dict[str, LM] = {
            name: lm if isinstance(lm, LM) else load(lm) for name, lm in specs.items()
        }
        if self.active:  # what does not fit is said before any sound is heard
            known = {"am"} if is_default(self.weights) else OF_WHISPER & {*self.weights.features}
            self.choose([NBest.of("probe", ["a"], **{name: [0.0] for name in known})])

    @property
    def active(self) -> bool:
        """Return whether it can change a text."""
        return bool(self.lms) or self.glossary is not None or self.ear is not None

    @property
    def signature(self) -> dict:
        """Return what its choices depend on."""
        weights = self.weights
        return {
            "lms": {name: lm.signature for name, lm in self.lms.items()},
            "weights": weights if isinstance(weights, str) else dict(weights.features),
            "normaliser": self.written,
            "phrases": digest({"all": repr(self.glossary)}) if self.glossary else "",
            **({EAR: self.ear.signature} if self.ear else {}),
        }

    def describe(self) -> str:
        """Return what it consists of, in a line."""
        weights = self.weights if isinstance(self.weights, str) else self.weights.dev.path
        parts = [*self.lms, *["a glossary"] * (self.glossary is not None)]
        parts += ["a second ear"] * (self.ear is not None)
        return f"{' and '.join(parts)}, weights {weights}"

    def names_session(self, name: str | None) -> bool:
        """Return whether the glossary has phrases of a session or speaker of this name."""
        return self.glossary is not None and name in self.glossary.own

    def choose(self, lists: Sequence[NBest], sounds: Sequence = ()) -> list[NBest]:
        """Return lists, none empty, with the best hypothesis first and its total among its
        scores; `sounds` are what the ear hears of each, samples (N,) at its rate.
        """
        lists = [self.rewrite(nbest) for nbest in lists]
        with self.saying():
            tables = {name: lm.score_lists(lists) for name, lm in self.lms.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubts about a set, which some seconds are not
            columns = {column: tables[name] for column, name in self.columns.items()}
            if self.ear is not None:
                columns[EAR] = self.hear(lists, sounds)
            return rescore(lists, self.weights, columns, phrases=self.glossary_of(lists))

    def hear(self, lists: Sequence[NBest], sounds: Sequence) -> ScoreTable:
        """Return the ear's column; a list of one hypothesis, with nothing to choose, has 0."""
        log_prob, tokens = {}, {}
        for nbest, samples in itertools.zip_longest(lists, sounds):
            texts = [hyp.display for hyp in nbest.hyps]
            heard = self.ear.score(texts, samples) if len(texts) > 1 else [(0.0, 1)] * len(texts)
            log_prob[nbest.utt], tokens[nbest.utt] = map(np.array, zip(*heard, strict=True))
        return ScoreTable(log_prob, tokens, {**self.ear.signature, **WRITTEN})

    def glossary_of(self, lists: Sequence[NBest]):
        """Return the glossary with the phrases of these lists alone, which may be none."""
        if self.glossary is None or not self.glossary.own:
            return self.glossary
        ids = {one for nbest in lists for one in self.glossary.ids_of(nbest.utt)}
        return replace(self.glossary, own={one: self.glossary.own[one] for one in sorted(ids)})

    def rewrite(self, nbest: NBest) -> NBest:
        """Return a list as language models read it; what the recogniser wrote stays, beside."""
        nbest = rewrite_list(nbest, hyps=self.normalise, keep=True)
        return merge_equal(nbest, str)

    @contextlib.contextmanager
    def saying(self) -> Iterator[None]:
        """Say each warning of the block that was not said before."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for one in caught:
            kind = re.sub(r"[\d.,%]+|'[^']*'", "", str(one.message))
            if kind not in self.told:
                self.told.add(kind)
                say(f"warning: {one.message}")


def name_model(lm: str) -> tuple[str, str]:
    """Return the name of a model's column and the model, of NAME=LM or LM."""
    found = None if Path(lm).exists() else NAMED.fullmatch(lm)
    if found:
        return found[1], found[2]
    return re.sub(r"[^\w.-]", "-", Path(lm.partition(",")[0]).name) or "lm", lm


def match_columns(specs: Mapping[str, str], weights, ear: bool) -> dict[str, str]:
    """Return the model of each column that the weights have, but for the `ear`; UserError where one
    lacks the other.
    """
    if is_default(weights):
        if ear and not specs:
            raise UserError("--ear: default weights need a language model; give --lm, or --weights")
        return {name: name for name in specs}
    if ear != (EAR in weights.features):
        cause = f"have {'no' if ear else 'a'} column {EAR!r}"
        raise UserError(f"--ear: the weights {cause}; give what `lmtools tune` had")
    columns = [name for name in weights.features if name not in {*OWN, EAR}]
    bases = {summed(name) for name in columns}
    if len(bases) == len(specs) == 1:
        return dict.fromkeys(columns, next(iter(specs)))
    if bases != {*specs}:
        raise UserError(
            f"--lm: the weights are of the models {', '.join(sorted(bases)) or 'none'}, given are"
            f" {', '.join(specs) or 'none'}; give each as --lm NAME=LM"
        )
    return {name: summed(name) for name in columns}


def share_confidence(nbest: NBest) -> list[tuple[str, float]]:
    """Return the words of the first hypothesis of a list that was chosen from, each with its
    posterior; none without the door that knows them.
    """
    if "networks" not in find_doors() or TOTAL not in nbest.hyps[0].scores:
        return []
    build = open_door("networks", "lists:build_network", "confidences")
    totals = np.array([hyp.scores[TOTAL] for hyp in nbest.hyps])
    network = build(nbest, posterior(totals, 1.0))
    return [(slot.chosen, slot.confidence) for slot in network.slots if slot.chosen]
