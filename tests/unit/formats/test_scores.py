import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.formats import scores
from lmtools.types import Hypothesis, NBest, ScoreTable

ids = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
) | st.just("a#2")
values = st.lists(
    st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**9 - 1)),
    min_size=1,
    max_size=4,
)
signatures = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)


def table(lists, signature=None):
    log_prob = {utt: np.array([value for value, _ in rows]) for utt, rows in lists.items()}
    return ScoreTable(
        log_prob,
        {utt: np.array([tokens for _, tokens in rows]) for utt, rows in lists.items()},
        signature or {},
    )


def nbests(**lengths):
    """Lists of so many hypotheses, h0, h1 ..."""
    return [
        NBest(utt, tuple(Hypothesis(f"h{rank}") for rank in range(length)))
        for utt, length in lengths.items()
    ]


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(ids, values, max_size=4), signatures)
def test_round_trip_is_exact(tmp_path_factory, lists, signature):
    path = tmp_path_factory.mktemp("scores") / "a.scores"
    wanted = table(lists, signature)
    some = nbests(**{utt: len(rows) for utt, rows in lists.items()})
    scores.write(wanted, some, path)
    found = scores.read(path)
    assert dict(found.signature) == signature
    assert list(found.log_prob) == list(lists)
    scores.check(found, some, path, "n")
    for utt in lists:
        assert found.log_prob[utt].tobytes() == wanted.log_prob[utt].tobytes()
        assert found.tokens[utt].tolist() == wanted.tokens[utt].tolist()


def test_file_is_as_documented(tmp_path):
    path = tmp_path / "a.scores"
    texts = NBest("u#1", (Hypothesis(" one  two "), Hypothesis("")))
    scores.write(table({"u#1": [(-7.25, 4), (-1e-9, 0)]}, {"version": "1"}), [texts], path)
    assert path.read_text() == (
        '# lmtools-scores {"version": "1"}\nu#1#1\t-7.25\t4\nu#1#2\t-1e-09\t0\n'
        "# lists 63fa3350a5a65314f430bf198e2509ae\n"
    )


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_refuses_to_write_scores_that_are_no_numbers(tmp_path, value):
    with pytest.raises(UserError, match="a#2"):
        scores.write(table({"a": [(-1.0, 1), (value, 1)]}), nbests(a=2), tmp_path / "a.scores")
    assert not list(tmp_path.iterdir())


def test_columns_join_by_utterance_not_by_order():
    scored = table({"b": [(-3.0, 1)], "a": [(-1.0, 1), (-2.0, 1)]})
    columns = scores.columns(scored, nbests(a=2, empty=0, b=1), "f", "n")
    assert [column.tolist() for column in columns] == [[-1.0, -2.0], [], [-3.0]]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"a": 2, "b": 1, "c": 1, "d": 1}, "f: no scores for 2 of 4 utterances of n, first 'c'"),
        ({"a": 2}, "f: scores for 1 utterances that n does not have, first 'b'"),
        ({"a": 2, "b": 3}, "f: 1 scores for the 3 hypotheses of 'b' in n \\(1 such lists\\)"),
    ],
)
def test_check_names_the_first_problem(lists, message):
    with pytest.raises(UserError, match=f"^{message}; "):
        scores.check(
            table({"a": [(-1.0, 1), (-2.0, 1)], "b": [(-3.0, 1)]}), nbests(**lists), "f", "n"
        )


TEXTS = {"a": ["one two", "one", "two"], "b": ["three"], "c": ["x", "x"]}
LISTS = [NBest(utt, tuple(map(Hypothesis, texts))) for utt, texts in TEXTS.items()]


@pytest.fixture
def written(tmp_path):
    """A file of scores of LISTS."""
    rows = {
        "a": [(-1.5, 3), (-2.25, 2), (-3.0, 2)],
        "b": [(-0.1 - 0.2, 2)],
        "c": [(-1.0, 2), (-1.0, 2)],
    }
    scores.write(table(rows, {"lm": "tta", "model": "0a"}), LISTS, tmp_path / "a.scores")
    return tmp_path / "a.scores"


def texts(*changed):
    return [
        NBest(utt, tuple(map(Hypothesis, rows))) for utt, rows in {**TEXTS, **dict(changed)}.items()
    ]


@pytest.mark.parametrize(
    "changed",
    [("a", ["two", "one", "one two"]), ("a", ["one  two", "one", "three"]), ("c", ["x", "y"])],
)
def test_scores_of_other_texts_or_another_order_are_refused(written, changed):
    with pytest.raises(UserError) as refused:
        scores.columns(scores.read(written), texts(changed), written, "n.jsonl")
    assert str(refused.value) == (
        f"{written}: scores of other lists than n.jsonl: the utterances are the same, and"
        f" hypotheses or their order are not; {scores.REMEDY}"
    )


def test_other_spaces_another_order_of_lists_and_empty_lists_are_the_same(written):
    lists = texts(("a", [" one   two", "one ", "two"]))[::-1]
    scores.check(scores.read(written), [*lists, NBest("d", ())], written, "n")


def test_hashes_of_parts_make_that_of_all():
    shares = [scores.hash_list(nbest) for nbest in LISTS]
    assert scores.spell_hash(sum(shares)) == scores.hash_lists(LISTS[::-1])
    assert scores.hash_lists(LISTS[:2]) != scores.hash_lists(LISTS)


def test_a_file_that_was_cut_is_refused(written):
    written.write_text("".join(written.read_text().splitlines(True)[:-2]))
    with pytest.raises(UserError, match=r"a\.scores: 1 scores for the 2 hypotheses of 'c' in n"):
        scores.check(scores.read(written), LISTS, written, "n")


@pytest.mark.parametrize("check", ["", "\t0123456789ab"])
def test_files_without_the_last_line_and_of_older_versions_fit_any_text(written, check):
    lines = written.read_text().splitlines()[:-1]
    written.write_text("".join(f"{line}{check}\n" for line in lines))
    found = scores.read(written)
    assert found.lists is None and found.signature == {"lm": "tta", "model": "0a"}
    scores.check(found, texts(("a", ["x", "y", "z"])), written, "n")
