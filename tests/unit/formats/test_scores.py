import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import scores
from lmtools.types import Hypothesis, NBest, ScoreTable

ids = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"), min_size=1, max_size=6) | st.just("a#2")
values = st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**9 - 1)), min_size=1, max_size=4)
signatures = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4), st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
)


def table(lists, signature=None):
    log_prob = {utt: np.array([value for value, _ in rows]) for utt, rows in lists.items()}
    return ScoreTable(log_prob, {utt: np.array([tokens for _, tokens in rows]) for utt, rows in lists.items()}, signature or {})


def nbests(**lengths):
    return [NBest(utt, tuple(Hypothesis(f"h{rank}") for rank in range(length))) for utt, length in lengths.items()]


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(ids, values, max_size=4), signatures)
def test_round_trip_is_exact(tmp_path_factory, lists, signature):
    path = tmp_path_factory.mktemp("scores") / "a.scores"
    wanted = table(lists, signature)
    scores.write(wanted, path)
    found = scores.read(path)
    assert dict(found.signature) == signature
    assert list(found.log_prob) == list(lists)
    for utt in lists:
        assert found.log_prob[utt].tobytes() == wanted.log_prob[utt].tobytes()
        assert found.tokens[utt].tolist() == wanted.tokens[utt].tolist()


def test_file_is_as_documented(tmp_path):
    path = tmp_path / "a.scores"
    scores.write(table({"u#1": [(-7.25, 4), (-1e-9, 0)]}, {"version": "1"}), path)
    assert path.read_text() == '# lmtools-scores {"version": "1"}\nu#1#1\t-7.25\t4\nu#1#2\t-1e-09\t0\n'


HEADER = "# lmtools-scores {}\n"


@pytest.mark.parametrize(
    ("content", "line", "cause"),
    [
        ("", 1, "no header"),
        ("a#1\t-1\t2\n", 1, "no header"),
        ("# lmtools-scores {\n", 1, "no header"),
        ("# lmtools-scores [1]\n", 1, "no header"),
        (HEADER + "a#2\t-1\t2\n", 2, "rank 2 where 1 is due"),
        (HEADER + "a#1\t-1\t2\na#3\t-1\t2\n", 3, "rank 3 where 2 is due"),
        (HEADER + "a#1\t-1\t2\nb#1\t-1\t2\na#1\t-1\t2\n", 4, "rank 1 where 2 is due"),
        (HEADER + "a#0\t-1\t2\n", 2, "rank 0"),
        (HEADER + "a#1\tnan\t2\n", 2, "expected a finite number"),
        (HEADER + "a#1\t-inf\t2\n", 2, "expected a finite number"),
        (HEADER + "a#1\t-1e999\t2\n", 2, "expected a finite number"),
        (HEADER + "a#1\t1_0\t2\n", 2, "expected a finite number"),
        (HEADER + "a#1\t-1\n", 2, "expected `utt#rank"),
        (HEADER + "a#1 -1 2\n", 2, "expected `utt#rank"),
        (HEADER + "a\t-1\t2\n", 2, "expected `utt#rank"),
        (HEADER + "a#1\t-1\t-2\n", 2, "expected `utt#rank"),
        (HEADER + "\n", 2, "expected `utt#rank"),
    ],
)
def test_refuses(tmp_path, content, line, cause):
    path = tmp_path / "a.scores"
    path.write_text(content)
    with pytest.raises(UserError, match=f"^{path}:{line}: .*{cause}"):
        scores.read(path)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_refuses_to_write_scores_that_are_no_numbers(tmp_path, value):
    with pytest.raises(UserError, match="a#2"):
        scores.write(table({"a": [(-1.0, 1), (value, 1)]}), tmp_path / "a.scores")
    assert not list(tmp_path.iterdir())


def test_columns_join_by_utterance_not_by_order():
    scored = table({"b": [(-3.0, 1)], "a": [(-1.0, 1), (-2.0, 1)]})
    columns = scores.columns(scored, nbests(a=2, empty=0, b=1), "f")
    assert [column.tolist() for column in columns] == [[-1.0, -2.0], [], [-3.0]]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"a": 2, "b": 1, "c": 1, "d": 1}, "f: no scores for 2 of 4 utterances, first 'c'"),
        ({"a": 2}, "f: scores for 1 utterances that the lists do not have, first 'b'"),
        ({"a": 2, "b": 3}, "f: 1 scores for the 3 hypotheses of 'b' \\(1 such lists\\)"),
    ],
)
def test_check_names_the_first_problem(lists, message):
    with pytest.raises(UserError, match=f"^{message}; "):
        scores.check(table({"a": [(-1.0, 1), (-2.0, 1)], "b": [(-3.0, 1)]}), nbests(**lists), "f")
