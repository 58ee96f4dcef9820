import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import hyporadise
from lmtools.types import TOTAL, Hypothesis, NBest

ids = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
floats = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def nbest_lists(draw):
    scores = st.fixed_dictionaries({"am": floats} if draw(st.booleans()) else {})
    hyps = st.lists(st.builds(Hypothesis, texts, scores), max_size=3).map(tuple)
    return [
        NBest(utt, draw(hyps), draw(st.none() | texts))
        for utt in draw(st.lists(ids, unique=True, max_size=3))
    ]


@settings(max_examples=35, deadline=None)
@given(
    nbest_lists(),
    st.sampled_from(["n.json", "n.json.gz"]),
    st.sampled_from([{}, {"score": "-score"}]),
)
def test_round_trip(tmp_path_factory, nbests, name, options):
    path = tmp_path_factory.mktemp("h") / name
    hyporadise.write(nbests, path, **options)
    if options and not all(nbest.hyps and nbest.hyps[0].scores for nbest in nbests):
        options = {"score": "none"}  # the column is not there to be asked for
        nbests, kept = map(bare, nbests), map(bare, hyporadise.read(path, **options))
        assert list(kept) == list(nbests)
    else:
        assert list(hyporadise.read(path, **options)) == nbests


def bare(nbest):
    """A list without scores and extras."""
    return NBest(nbest.utt, tuple(Hypothesis(hyp.text) for hyp in nbest.hyps), nbest.ref)


TREES = [
    {
        "id": "a1",
        "input": ["blue fins", "blue finch"],
        "output": "b",
        "am_score": [-0.5, -0.75],
        "score": [1, 2],
        "note": {"x": [1]},
    },
    {"instruction": "find it", "input": ["x"], "output": "", "am_score": [-1e300]},
    {"input": [], "am_score": []},
]


def test_a_file_as_published_comes_back(tmp_path):
    path, again = tmp_path / "h.json", tmp_path / "again.json"
    path.write_text(json.dumps(TREES, indent=1))
    lists = list(hyporadise.read(path))
    hyps = (
        Hypothesis("blue fins", {"am": -0.5}, {"score": "1"}),
        Hypothesis("blue finch", {"am": -0.75}, {"score": "2"}),
    )
    assert lists == [
        NBest("a1", hyps, "b", {"note": '{"x": [1]}'}),
        NBest("2", (Hypothesis("x", {"am": -1e300}),), "", {"instruction": '"find it"'}),
        NBest("3", ()),
    ]
    hyporadise.write(lists, again)
    assert json.loads(again.read_text()) == [
        TREES[0],
        {**TREES[1], "id": "2"},
        {"id": "3", "input": []},
    ]
    assert hyporadise.recognises(path, path.read_text().split("\n")[0]) and hyporadise.recognises(
        again, "["
    )


def test_which_score(tmp_path):
    path = tmp_path / "h.json"
    path.write_text(json.dumps(TREES[:1]))
    read = {
        name: [hyp.scores.get("am") for hyp in next(hyporadise.read(path, name)).hyps]
        for name in (None, "score", "-score", "none")
    }
    assert read == {None: [-0.5, -0.75], "score": [1, 2], "-score": [-1, -2], "none": [None, None]}
    rescored = NBest("a", (Hypothesis("x", {"am": -1.0, "lm": -2.0, TOTAL: -3.0}),))
    hyporadise.write([rescored], path)
    assert json.loads(path.read_text())[0]["am_score"] == [-3.0]
    with pytest.raises(UserError, match="'a': has the scores am, lm, and this format holds one"):
        hyporadise.write([NBest("a", (Hypothesis("x", {"am": -1.0, "lm": -2.0}),))], path)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ('[\n{"input": [}]', ":2: not JSON"),
        ('[{"input": [], "input": []}]', "a key occurs twice"),
        ("[" * 100_000, ": n"),
        ("\n\udcff", ":2: not UTF-8"),
        ("{}", "the file is {}; expected a list"),
        ("[7]", "list 1: it is 7; expected an object"),
        ('[{"output": "x"}]', "list 1: key 'input' is missing"),
        ('[{"input": "x"}]', "'input' is"),
        ('[{"input": [null]}]', "a hypothesis is null; expected a text"),
        ('[{"input": ["\\ud800"]}]', "surrogate"),
        ('[{"input": [], "output": 3}]', "'output' is 3"),
        ('[{"input": [], "id": []}]', "'id' is []"),
        ('[{"input": [], "id": "a b"}]', "white space"),
        (
            '[{"input": [], "id": "a"}, {"input": [], "id": "a"}]',
            "list 2: utterance 'a' occurs a second time",
        ),
        ('[{"input": ["x"], "am_score": [1, 2]}]', "2 scores in 'am_score' for 1 hypotheses"),
        ('[{"input": ["x"], "am_score": ["1"]}]', "score 'am_score' is"),
        ('[{"input": ["x"], "am_score": [NaN]}]', "finite"),
        (
            '[{"input": ["x"], "am_score": [1]}, {"input": ["x"]}]',
            "hypothesis 1 has scores (none), earlier ones am",
        ),
    ],
)
def test_refuses(tmp_path, content, cause):
    path = tmp_path / "h.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError) as caught:
        list(hyporadise.read(path))
    message = str(caught.value)
    assert (
        message.startswith(str(path))
        and cause in message
        and "; " in message
        and "\n" not in message
    )
