import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.evaluate.corpus import evaluate
from lmtools.rescoring.features import gather
from lmtools.rescoring.lists import rescore
from lmtools.rescoring.tuning import tune
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.types import Hypothesis, NBest

WORDS = [f"w{i}" for i in range(30)]


def corrupted(ref, errors, rng):
    """A list of words with about so many of them replaced, dropped or doubled."""
    words = list(ref)
    for _ in range(errors):
        place = int(rng.integers(len(words)))
        ways = [], [words[place]] * 2, [str(rng.choice(WORDS))]
        words[place : place + 1] = ways[rng.integers(3)]
        words = words or ["uh"]
    return words


def sample(utterances=40, depth=8, seed=0, lms=2):
    """Lists and LM columns that fall with errors, noisily; one list is empty."""
    rng = np.random.default_rng(seed)
    nbests, columns = [], {f"lm{i}": [] for i in range(lms)}
    for number in range(utterances):
        ref = rng.choice(WORDS, size=rng.integers(1, 12)).tolist()
        errors = rng.integers(0, 5, size=depth if number else 0)
        am = np.sort(-errors * 2 + rng.normal(size=len(errors)) * 6)[::-1]
        texts = [" ".join(corrupted(ref, count, rng)) for count in errors]
        nbests.append(NBest.of(f"u{number}", texts, " ".join(ref), am=am))
        for column in columns.values():
            column.append(rng.normal(size=len(errors)) * 3 - errors * 3)
    return nbests, columns


@pytest.fixture(scope="module")
def data():
    nbests, columns = sample()
    return nbests, gather(nbests, columns, "n"), tuple(columns)


def measured(nbests, features, weights, metric):
    """The metric of the rescored lists by the evaluator: the independent way."""
    lists = rescore(nbests, features, weights, "n")
    hyps = {nbest.utt: nbest.hyps[0].text for nbest in lists if nbest.hyps}
    return evaluate({nbest.utt: nbest.ref for nbest in nbests}, hyps, metric).score


def tuned(data, metric="wer", **options):
    nbests, features, lms = data
    return tune(nbests, features, "n", TuningOptions(metric, lms=lms, **options))


@pytest.mark.parametrize("metric", ["wer", "cer", "bleu"])
@pytest.mark.parametrize("form", ["linear", "interpolation"])
def test_the_score_is_what_rescoring_gives(data, metric, form):
    nbests, features, _ = data
    fixed = {"lm1": 0.0, "words": 0.0} if form == "interpolation" else {}
    weights = tuned(data, metric, fix=fixed, form=form)
    assert measured(nbests, features, weights, metric) == pytest.approx(weights.dev.score, abs=1e-9)
    first = {nbest.utt: nbest.hyps[0].text for nbest in nbests if nbest.hyps}
    assert weights.dev.first_pass == pytest.approx(
        evaluate({n.utt: n.ref for n in nbests}, first, metric).score
    )
    assert (weights.dev.score > weights.dev.first_pass) == (metric == "bleu")
    assert weights.dev.utterances == len(nbests) and weights.reference == "am"


def test_tuning_is_deterministic(data):
    assert tuned(data) == tuned(data)


def test_fixed_weights_stay(data):
    weights = tuned(data, fix={"lm0": 2.5, "words": -1.0})
    assert weights.features["am"] == 1
    assert weights.features["lm0"] == 2.5
    assert weights.features["words"] == -1
    assert weights.features["lm1"] > 0 and weights.search["fixed"] == {"lm0": 2.5, "words": -1.0}


def test_the_reference_may_be_fixed_or_another(data):
    twice = tuned(data, fix={"am": 2.0})
    assert twice.reference == "am" and twice.features["am"] == 2
    assert twice.dev.score == tuned(data).dev.score
    without = tuned(data, fix={"am": 0.0})
    assert without.reference == "lm0"
    assert without.features["am"] == 0
    assert without.features["lm0"] == 1
    assert list(without.search["curves"]) == ["lm1"]
    named = tuned(data, fix={"am": 0.0}, reference="lm1")
    assert named.reference == "lm1"
    assert named.features["lm1"] == 1
    assert named.dev.score == pytest.approx(without.dev.score, abs=1)
    told = "reference lmx: n has no such feature; it has am, lm0, lm1, words"
    with pytest.raises(UserError, match=told):
        tuned(data, reference="lmx")


def test_curves_are_of_tuned_weights_only(data):
    assert list(tuned(data, fix={"lm0": 2.5}).search["curves"]) == ["lm1"]


@pytest.mark.parametrize("metric", ["wer", "bleu"])
@pytest.mark.parametrize("seed", range(2))
def test_no_feature_is_better_left_out(seed, metric):
    """And exact weights are never worse than the given part by itself."""
    nbests, columns = sample(utterances=12, depth=30, seed=seed, lms=3)
    features, lms = gather(nbests, columns, "n"), tuple(columns)
    sign = 1 if metric == "wer" else -1

    def score(*given):
        options = TuningOptions(metric, fix=dict.fromkeys(given, 0.0), lms=lms, objective="exact")
        return sign * tune(nbests, features, "n", options).dev.score

    best = score()
    assert all(best <= score(name) + 1e-9 for name in features.names[1:])
    assert best <= score(*features.names[1:]) + 1e-9


def test_interpolation_is_the_scale_in_another_form(data):
    fixed = {"lm1": 0.0, "words": 0.0}
    linear = tuned(data, fix=fixed)
    mixed = tuned(data, fix=fixed, form="interpolation")
    part = mixed.search["lambda"]
    assert mixed.features == pytest.approx({"am": 1 - part, "lm0": part, "lm1": 0, "words": 0})
    assert part / (1 - part) == pytest.approx(linear.features["lm0"])
    assert max(scale for scale, _ in mixed.search["curves"]["lm0"]["points"]) < 1


def test_the_first_pass_of_an_interpolation_is_what_is_fixed(data):
    fixed = {"am": 0.25, "lm1": 0.5, "words": -0.1}
    mixed = tuned(data, fix=fixed, form="interpolation")
    linear = tuned(data, fix=fixed)
    part = mixed.search["lambda"]
    assert part / (1 - part) == pytest.approx(linear.features["lm0"])
    rest = {name: (1 - part) * weight for name, weight in fixed.items()}
    assert mixed.features == pytest.approx({**rest, "lm0": part})
    assert mixed.dev.score == linear.dev.score


@pytest.mark.parametrize("negative", [False, True])
def test_a_harmful_lm_gets_next_to_no_weight_or_a_negative_one(negative):
    nbests, columns = sample(lms=1)
    features = gather(nbests, {"bad": [-column for column in columns["lm0"]]}, "n", derived=())
    options = TuningOptions(lms=("bad",), negative=["all"] if negative else None)
    weights = tune(nbests, features, "n", options)
    assert weights.features["bad"] < -0.5 if negative else 0 <= weights.features["bad"] < 0.05
    curve = weights.search["curves"]["bad"]
    assert (curve["flat"][0] < 0) == (curve["points"][0][0] < 0) == negative


def test_a_column_that_never_varies_in_a_list_gets_no_weight():
    nbests, columns = sample(lms=1)
    constant = [np.full(len(nbest.hyps), -3.0 * row) for row, nbest in enumerate(nbests)]
    features = gather(nbests, {**columns, "same": constant}, "n")
    weights = tune(nbests, features, "n", TuningOptions(lms=("lm0", "same")))
    assert weights.features["same"] == 0 and weights.features["lm0"] > 0


def test_lists_of_one_hypothesis_keep_it():
    nbests = [NBest("a", (Hypothesis("x", {"am": -1.0}),), "y"), NBest("b", (), "z")]
    weights = tune(nbests, gather(nbests, {}, "n"), "n", TuningOptions())
    assert weights.features == {"am": 1.0, "words": 0.0}
    assert weights.dev.score == weights.dev.first_pass == 100


@pytest.mark.parametrize("form", ["linear", "interpolation"])
def test_the_curve_says_the_metric_at_every_scale(data, form):
    nbests, features, _ = data
    fixed = {"lm1": 0.0, "words": 0.0} if form == "interpolation" else {}
    weights = tuned(data, fix=fixed, form=form)
    curve = weights.search["curves"]["lm0"]
    scales, metric = np.array(curve["points"]).T
    low, high = curve["flat"]
    assert low <= curve["chosen"] <= high and (np.diff(scales) > 0).all() and scales[0] == 0
    assert metric[scales == curve["chosen"]] == pytest.approx(weights.dev.score)
    flat = (scales >= low) & (scales < high)
    assert (metric[flat] <= max(metric.min() + 0.1, weights.dev.score) + 1e-9).all()
    for scale, value in list(zip((scales[1:] + scales[:-1]) / 2, metric[:-1], strict=True))[::7]:
        there = {**weights.features, "lm0": scale}
        if form == "interpolation":
            there = {"am": 1 - scale, "lm0": scale, "lm1": 0.0, "words": 0.0}
        changed = type(weights)(weights.metric, there, "am", weights.dev)
        assert measured(nbests, features, changed, "wer") == pytest.approx(value)


@pytest.mark.parametrize(
    "fixed, form, message",
    [
        ({"lmx": 1.0}, "linear", "--fix lmx: n has no such feature; it has am, lm0, lm1, words"),
        (dict.fromkeys(("am", "lm0", "lm1", "words"), 0.0), "linear", "--fix: 0 for the reference"),
        ({}, "interpolation", "words would be tuned too"),
        ({"words": 0.0}, "interpolation", "lm0, lm1 would be tuned too"),
        ({"words": 0.0, "lm0": 1.0, "lm1": 1.0}, "interpolation", "give one --scores"),
    ],
)
def test_options_that_do_not_fit(data, fixed, form, message):
    with pytest.raises(UserError, match=message):
        tuned(data, fix=fixed, form=form)


def test_references_are_needed(data):
    nbests, features, lms = data
    lacking = [*nbests[:-1], NBest(nbests[-1].utt, nbests[-1].hyps)]
    with pytest.raises(UserError, match=r"dev\.jsonl: utterance 'u39' has no reference"):
        tune(lacking, features, "dev.jsonl", TuningOptions(lms=lms))
