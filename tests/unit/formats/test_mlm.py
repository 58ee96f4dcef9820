import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import mlm
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
    hyps = st.lists(st.builds(Hypothesis, texts, scores), max_size=12).map(tuple)
    return [
        NBest(utt, draw(hyps), draw(st.none() | texts))
        for utt in draw(st.lists(ids, unique=True, max_size=3))
    ]


@settings(max_examples=35, deadline=None)
@given(nbest_lists())
def test_round_trip(tmp_path_factory, nbests):
    path = tmp_path_factory.mktemp("m") / "am.json"
    mlm.write(nbests, path)
    assert list(mlm.read(path)) == nbests


TREE = {
    "zed1": {"hyp_10": {"score": -9, "text": "z"}, "hyp_2": {"score": -8.5, "text": " y", "len": 1},
             "hyp_1": {"score": -7.4, "text": "x"}, "ref": "r"},
    "zed2": {"ref": "", "speaker": "s"},
}  # fmt: skip


def test_numbers_order_the_hypotheses(tmp_path):
    path = tmp_path / "am.json"
    path.write_text(json.dumps(TREE, indent=2))
    lists = list(mlm.read(path))
    hyps = (
        Hypothesis("x", {"am": -7.4}),
        Hypothesis(" y", {"am": -8.5}, {"len": "1"}),
        Hypothesis("z", {"am": -9.0}),
    )
    assert lists == [NBest("zed1", hyps, "r"), NBest("zed2", (), "", {"speaker": '"s"'})]
    assert mlm.recognises(path, "{")
    mlm.write(lists, path)
    tree = json.loads(path.read_text())
    assert (
        tree["zed2"] == TREE["zed2"]
        and tree["zed1"]["hyp_3"] == TREE["zed1"]["hyp_10"]
        and len(tree["zed1"]) == 4
    )


def test_an_lm_file_and_a_total(tmp_path):
    path = tmp_path / "lm.json"
    path.write_text('{"a": {"hyp_1": {"score": -3, "text": "x"}}}')
    lists = list(mlm.read(path, name="lm"))
    assert lists == [NBest("a", (Hypothesis("x", {"lm": -3.0}),))]
    with pytest.raises(UserError, match="has the scores lm"):
        mlm.write(lists, path)
    mlm.write(lists, path, name="lm")
    assert list(mlm.read(path, name="lm")) == lists
    mlm.write([NBest("a", (Hypothesis("x", {"am": -1.0, "lm": -2.0, TOTAL: -3.5}),))], path)
    assert json.loads(path.read_text())["a"]["hyp_1"]["score"] == -3.5


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ('{"a": {\n"hyp_1": }}', ":2: not JSON"),
        ("[]", "the file is []; expected an object"),
        ('{"a": 1}', "utterance 'a': it is 1"),
        ('{"a b": {}}', "white space"),
        ('{"\\ud800": {}}', "surrogate"),
        ('{"a": {"hyp_1": []}}', "hyp_1: it is []"),
        ('{"a": {"hyp_1": {}}}', "hyp_1: key 'text' is missing"),
        ('{"a": {"hyp_1": {"text": 3}}}', "hyp_1: 'text' is 3"),
        ('{"a": {"hyp_1": {"text": "x", "score": "3"}}}', "score 'score' is"),
        ('{"a": {"hyp_1": {"text": "x", "score": 1e999}}}', "finite"),
        ('{"a": {"hyp_1": {"text": "x"}, "hyp_01": {"text": "x"}}}', "occurs twice"),
        (
            '{"a": {"hyp_1": {"text": "x"}}, "b": {"hyp_1": {"text": "x", "score": 1}}}',
            "hypothesis 1 has scores am",
        ),
        ('{"a": {"ref": 3}}', "'ref' is 3"),
    ],
)
def test_refuses(tmp_path, content, cause):
    path = tmp_path / "am.json"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        list(mlm.read(path))
    message = str(caught.value)
    assert (
        message.startswith(str(path))
        and cause in message
        and "; " in message
        and "\n" not in message
    )
