import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.formats import scores
from lmtools.formats.scores import hash_lists
from lmtools.rescoring.features import LENGTHS, best, combine, gather, read_columns
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.types import Hypothesis, NBest, ScoreTable

SCORED = [
    NBest.of("a", ["one two", "one"], "one two", am=[-1, -3], lm=[-2, -1]),
    NBest("b", (), "three"),
    NBest("c", (Hypothesis("", {"am": -5.0, "lm": -6.0}),), ""),
]
BARE = [
    NBest(nbest.utt, tuple(Hypothesis(hyp.text) for hyp in nbest.hyps), nbest.ref)
    for nbest in SCORED
]
COLUMN = [np.array([-7.0, -8.0]), np.zeros(0), np.array([-9.0])]


def test_components_then_columns_then_words():
    features = gather(SCORED, {"tta": COLUMN}, "n")
    assert features.names == ("am", "lm", "tta", "words") and not features.warnings
    assert features.valid.tolist() == [[True, True], [True, False], [True, False]]
    assert features.column("lm").tolist() == [[-2, -1], [0, 0], [-6, 0]]
    assert features.column("tta").tolist() == [[-7, -8], [0, 0], [-9, 0]]
    assert features.column("words").tolist() == [[2, 1], [0, 0], [0, 0]]


def test_lists_without_scores_have_their_rank():
    features = gather(BARE, {}, "n", derived=())
    assert features.names == ("rank",)
    np.testing.assert_allclose(features.column("rank"), [[0, -np.log(2)], [0, 0], [0, 0]])


def components(*names):
    return [NBest("a", (Hypothesis("x", dict.fromkeys(names, -1.0)),))]


@pytest.mark.parametrize(
    "names, reference",
    [
        (("lm", "am"), "am"),
        (("lm", "score"), "score"),
        (("LM0", "TM0"), "LM0"),
        (("score", "am"), "am"),
        ((), "rank"),
    ],
)
def test_reference(names, reference):
    assert TuningOptions().reference_of(gather(components(*names), {}, "n")) == reference


def test_a_component_takes_the_place_of_the_built_in():
    features = gather(components("am", "words"), {}, "n")
    assert features.names == ("am", "words") and features.column("words").tolist() == [[-1.0]]


@pytest.mark.parametrize("name", ["am", "rank", *LENGTHS])
def test_a_column_may_not_take_a_name(name):
    told = f"--scores {name}=.*n has a feature of this name already; choose another"
    with pytest.raises(UserError, match=told):
        gather(SCORED, {name: COLUMN}, "n")


def test_a_component_must_be_everywhere():
    lists = [*SCORED, NBest("d", (Hypothesis("x", {"am": -1.0}),))]
    with pytest.raises(UserError, match="n: hypothesis 1 of utterance 'd' has no score 'lm'; give"):
        gather(lists, {}, "n")


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_values_must_be_finite(value):
    told = "n: feature 'tta' of hypothesis 2 of utterance 'a' is no finite number"
    with pytest.raises(UserError, match=told):
        gather(SCORED, {"tta": [np.array([-7.0, value]), *COLUMN[1:]]}, "n")


@pytest.mark.parametrize(("value", "instead"), [(-1e30, -8.0), (-1e308, -8.0), (1e308, -7.0)])
def test_values_that_no_score_can_have_count_as_the_worst_or_best_other_of_their_list(
    value, instead
):
    column = [np.array([-7.0, value, -8.0]), np.zeros(0), np.array([value])]
    lists = [NBest("a", tuple(map(Hypothesis, "xyz"))), *BARE[1:]]
    features = gather(lists, {"tta": column}, "n", derived=())
    assert features.column("tta").tolist() == [[-7, instead, -8], [0, 0, 0], [0, 0, 0]]
    assert column[0][1] == value
    about = (
        f"feature 'tta' of hypothesis 2 of utterance 'a' is {value:g}, and 1 more are like it: no"
        " score"
    )
    assert [line[: len(f"warning: n: {about}")] for line in features.warnings] == [
        f"warning: n: {about}"
    ]


def test_the_rank_may_be_asked_for():
    features = gather(SCORED, {}, "n", derived=("rank",))
    assert features.names == ("am", "lm", "rank")
    assert features.column("rank")[0].tolist() == [0, -np.log(2)]


def test_no_utterances():
    with pytest.raises(UserError, match="n: no utterances"):
        gather([], {}, "n")


def test_read_columns(tmp_path):
    path = tmp_path / "x=y.scores"
    scores.write(
        ScoreTable(
            {"a": COLUMN[0], "c": COLUMN[2]},
            {"a": np.array([3, 2]), "c": np.array([1])},
            {"lm": "x"},
        ),
        SCORED,
        path,
    )
    columns = read_columns([f"tta={path}"], SCORED, "n")
    assert columns.signatures == {"tta": {"lm": "x"}}
    assert columns.paths == {"tta": str(path)}
    assert not columns.unchecked
    assert [column.tolist() for column in columns.values["tta"]] == [[-7, -8], [], [-9]]
    with pytest.raises(UserError, match="a second one called 'tta'"):
        read_columns([f"tta={path}", f"tta={path}"], SCORED, "n")


def test_means_divide_by_tokens_or_words_and_by_one_where_there_are_none(tmp_path):
    path = tmp_path / "tta.scores"
    scores.write(
        ScoreTable({"a": COLUMN[0], "c": COLUMN[2]}, {"a": np.array([4, 2]), "c": np.array([0])}),
        SCORED,
        path,
    )
    columns = read_columns(
        [f"{name}={path}" for name in ("tta", "tta/token", "tta/word", "tta/x")], SCORED, "n"
    ).values
    assert {name: [row.tolist() for row in column] for name, column in columns.items()} == {
        "tta": [[-7, -8], [], [-9]],
        "tta/token": [[-7 / 4, -8 / 2], [], [-9]],
        "tta/word": [[-7 / 2, -8 / 1], [], [-9]],
        "tta/x": [[-7, -8], [], [-9]],
    }
    assert gather(SCORED, columns, "n").names == ("am", "lm", *columns, "words")


@pytest.mark.parametrize(
    ("text", "lengths"),
    [("", (0, 0, 0)), (" one  two ", (2, 7, np.log(3))), ("été.", (1, 4, np.log(2)))],
)
def test_lengths(text, lengths):
    features = gather([NBest("a", (Hypothesis(text, {"am": -1.0}),))], {}, "n", LENGTHS)
    assert features.names == ("am", "words", "characters", "log-words")
    np.testing.assert_allclose(features.values[1:, 0, 0], lengths)


@pytest.mark.parametrize("spec", ["dev.scores", "=dev.scores", "tta=", "/token=dev.scores"])
def test_read_columns_wants_name_and_file(spec):
    with pytest.raises(UserError, match="not NAME=FILE"):
        read_columns([spec], SCORED, "n")


def test_best_is_the_earlier_of_equals_and_never_padding():
    totals = np.array([[-1.0, -1.0, 0.0], [-3.0, -2.0, -2.0]])
    assert best(totals, np.array([[True, True, False], [True, True, True]])).tolist() == [0, 1]


def test_equal_hypotheses_have_equal_totals_wherever_they_stand():
    values = np.random.default_rng(0).normal(size=(5, 1, 1)) * np.ones((5, 7, 13))
    totals = combine(np.random.default_rng(1).normal(size=5), values)
    assert (totals == totals[0, 0]).all()


def test_the_hash_is_of_the_words_alone():
    assert hash_lists(SCORED) == hash_lists(BARE[::-1])
    assert hash_lists(SCORED) != hash_lists(SCORED[:2])
    assert hash_lists(BARE) == hash_lists(
        [NBest("a", (Hypothesis(" one  two"), Hypothesis("one"))), *BARE[1:]]
    )
