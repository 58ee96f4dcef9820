"""Default weights, `--weights default:NAME`: for lists of a recogniser of this name where there are
no references to tune on.

docs/whisper.md has the sets that they were measured on, and how many references it takes
until tuned weights are better.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.evaluate.fit import are_positive
from lmtools.rescoring.features import NEAR, ScoreColumns, components, summed
from lmtools.rescoring.tuning_options import LINEAR
from lmtools.rescoring.weights import Dev, Weights, describe_system
from lmtools.types import EAR, PHRASES, NBest

PREFIX = "default:"
GIVEN = ("words", "rank", PHRASES)  # what no list need have
WHISPER = "whisper"
OF_WHISPER = {"am", "avg", "nospeech", "length", "compression", "temperature"}
FAR = 20.0  # nats a word that no recogniser's probabilities cost on the whole
MEANS = 0.3  # nats from the best to the worst of a list, less than a token costs
TUNE = "with references, lmtools tune finds weights of these lists"
LM = "LM"  # stands for the one column of a language model
# weights of natural-log scores: `am` is the sum of the log-probabilities of the recogniser's tokens
DEFAULTS = {
    WHISPER: {"am": 1.0, LM: 0.15, "words": 1.3},
    # whatever the recogniser: the order of its lists, so that a hypothesis of rank r wins by one
    # word of the glossary more if log r is less than the weight (docs/phrases.md has its curve)
    PHRASES: {"rank": 1.0, PHRASES: 4.0},
}
# those of WHISPER where there is a column EAR, a smaller Whisper's
WITH_EAR = {"am": 1.0, EAR: 0.8, LM: 0.2, "words": 1.0}
NEVER = 1000.0  # of NEAR: no new hypothesis wins, since no references say by which margin
PHRASE_WEIGHT = 4.0  # of PHRASES among the weights of a recogniser


def is_default(weights) -> bool:
    """Return whether `weights` names default ones."""
    return isinstance(weights, str) and weights.startswith(PREFIX)


def load_weights(
    path, nbests: Sequence[NBest], columns: ScoreColumns, coming: str | None = None
) -> Weights:
    """Return the weights in `path`, or the default ones of `default:NAME` for lists with `columns`
    and one LM's, by its name. UserError for an unknown name, lists without these scores, none or
    several LMs.
    """
    if not is_default(path):
        return Weights.load(path)
    known = DEFAULTS.get(path.removeprefix(PREFIX))
    if known is None:
        names = ", ".join(f"{PREFIX}{name}" for name in DEFAULTS)
        raise UserError(
            f"--weights {path}: no such default; give {names}, or a file of lmtools tune"
        )
    apart = {PHRASES, EAR} if path == PREFIX + WHISPER else {PHRASES}
    if EAR in {*columns.values} & apart:
        known = WITH_EAR
    names = [*filter(None, [coming]), *(name for name in columns.values if name not in apart)]
    check_columns(names, columns, path)
    scores = components(nbests, path)
    weights = {names[0] if name == LM else name: weight for name, weight in known.items()}
    if PHRASES in columns.values:
        weights, names = {PHRASES: PHRASE_WEIGHT, **weights}, [*names, PHRASES]
    if missing := [name for name in known if name not in {*scores, LM, EAR, *GIVEN}]:
        raise UserError(
            f"--weights {path}: the lists have no score {missing[0]!r}; give lists of lmtools"
            " decode, or tune weights with lmtools tune"
        )
    texts = [name for name in ("words", "rank") if name in weights]
    heard = [EAR] * (EAR in weights)
    weights = {NEAR: NEVER, **weights}
    features = {
        name: weights.get(name, 0.0) for name in dict.fromkeys([*scores, *names, *heard, *texts])
    }
    return Weights(
        metric="wer",
        features=features,
        reference=next(iter(known)),
        dev=Dev(str(path), sha256="", utterances=0, first_pass=math.nan, score=math.nan),
        search={"form": LINEAR},
        signatures=columns.signatures,
        system=describe_system(nbests, columns, path),
    )


def check_columns(names: Sequence[str], columns: ScoreColumns, path: str) -> None:
    """Raise UserError unless the default weights `path` are for these columns of LMs."""
    if path == PREFIX + PHRASES:
        if names or PHRASES not in columns.values:
            raise UserError(
                f"--weights {path}: is for --phrases F and no column of scores; give that, or tune"
                " weights with lmtools tune"
            )
        return
    if len(names) != 1:
        raise UserError(
            f"--weights {path}: is for one language model, but there are {len(names)} columns of"
            " scores; give one --scores NAME=FILE, or tune weights with lmtools tune"
        )
    if summed(names[0]) != names[0]:
        raise UserError(
            f"--weights {path}: is for sums; give {summed(names[0])} in place of its mean"
        )


def doubt_scores(nbests: Sequence[NBest], weights: Weights, source) -> Iterator[str]:
    """Yield warnings where default weights of Whisper meet lists from `source` whose scores are not
    those of Whisper: sums of natural-log probabilities of tokens, under a nat a token.
    """
    if weights.dev.path != PREFIX + WHISPER:
        return
    scored = [nbest for nbest in nbests if nbest.hyps]
    values = [np.array([hyp.scores.get("am", 0.0) for hyp in nbest.hyps]) for nbest in scored]
    words = sum(len(hyp.text.split()) for nbest in scored for hyp in nbest.hyps)
    if not words or not any(map(len, values)):
        return
    flat = np.concatenate(values)
    spreads = [np.ptp(row) for row in values if len(row) > 1]
    others = sorted({*scored[0].hyps[0].scores} - OF_WHISPER)
    if are_positive(flat):
        cause = "all values of 'am' are positive: costs?"
    elif np.abs(flat).sum() > FAR * words:
        cause = f"'am' has {np.abs(flat).sum() / words:.0f} nats a word, Whisper under 3"
    elif np.median(np.abs(flat)) < 1 and spreads and np.median(spreads) < MEANS:
        cause = "'am' looks like a mean of tokens, not their sum"
    elif others:
        cause = f"Whisper has no score {', '.join(others)}, which these weights leave out"
    else:
        return
    yield f"warning: {source}: {PREFIX}{WHISPER} is for scores of Whisper: {cause}; {TUNE}"
