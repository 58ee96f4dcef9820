import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import whisper
from lmtools.types import TOTAL, Hypothesis, NBest

ids = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
floats = st.floats(allow_nan=False, allow_infinity=False)
tokens = st.integers(0, 99) | st.lists(st.integers(0, 99), max_size=3)


@st.composite
def nbest_lists(draw):
    scores = st.fixed_dictionaries({"am": floats} if draw(st.booleans()) else {})
    extra = st.fixed_dictionaries(
        {}, optional={"tokens": tokens.map(json.dumps), "note": texts.map(json.dumps)}
    )
    hyps = st.lists(st.builds(Hypothesis, texts, scores, extra), max_size=3).map(tuple)
    return [
        NBest(utt, draw(hyps), draw(st.none() | texts))
        for utt in draw(st.lists(ids, unique=True, max_size=3))
    ]


@settings(max_examples=35, deadline=None)
@given(nbest_lists())
def test_round_trip(tmp_path_factory, nbests):
    path = tmp_path_factory.mktemp("w") / "n.json"
    whisper.write(nbests, path)
    kept = list(whisper.read(path))
    assert [(n.utt, n.ref, [(h.text, h.scores, h.extra.keys()) for h in n.hyps]) for n in kept] == [
        (n.utt, n.ref, [(h.text, h.scores, h.extra.keys()) for h in n.hyps]) for n in nbests
    ]
    whisper.write(kept, path)
    assert list(whisper.read(path)) == kept


def read(tmp_path, *hyps):
    path = tmp_path / "n.json"
    path.write_text(json.dumps([{"utt": "a", "hypotheses": list(hyps)}]))
    assert whisper.recognises(path, path.read_text())
    return next(whisper.read(path)).hyps


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"sum_logprob": -6}, -6.0),
        ({"sum_logprob": -6, "tokens": 3}, -6.0),
        ({"avg_logprob": -1.5, "tokens": [1, 2, 3]}, -6.0),
        ({"avg_logprob": -1.5, "tokens": []}, -1.5),
        ({"avg_logprob": -1.5}, -1.5),
        ({"score": -1.5, "tokens": 4}, -6.0),
        ({"score": -3, "tokens": 4, "length_penalty": 0.5}, -6.0),
        ({"score": -3, "tokens": [9] * 4, "length_penalty": 0}, -3.0),
        ({"score": -3, "tokens": 4, "length_penalty": -0.5}, -1.5),
        ({"score": -3}, -3.0),
    ],
)
def test_the_division_is_undone(tmp_path, fields, expected):
    (hyp,) = read(tmp_path, {"text": "x", **fields})
    assert hyp.scores == {"am": expected} and hyp.extra.keys() == fields.keys() & {"tokens"}


def test_sums_that_a_search_reports_are_its_token_log_probabilities(tmp_path):
    log_probs = [-0.5, -1.25, -0.125, -2.0]  # the end of the sentence is the last
    total, listed = sum(log_probs), log_probs[:-1]
    ways = [
        {"avg_logprob": total / (len(listed) + 1), "tokens": len(listed)},  # openai-whisper
        # CTranslate2
        {"score": total / len(listed) ** 0.8, "tokens": len(listed), "length_penalty": 0.8},
        # Hugging Face
        {"score": total / len(log_probs) ** 0.8, "tokens": len(log_probs), "length_penalty": 0.8},
    ]
    assert [read(tmp_path, {"text": "x", **way})[0].scores["am"] for way in ways] == [
        pytest.approx(total)
    ] * 3


def test_what_it_writes(tmp_path):
    first, second = (
        {"text": " x", "avg_logprob": -1, "tokens": [7], "heat": 0.2},
        {"text": "y", "avg_logprob": -2, "tokens": []},
    )
    hyps = read(tmp_path, first, second)
    path = tmp_path / "o.json"
    whisper.write([NBest("a", hyps, "r", {"source": "7"})], path)
    assert json.loads(path.read_text()) == [
        {
            "source": 7,
            "utt": "a",
            "ref": "r",
            "hypotheses": [
                {"tokens": [7], "heat": 0.2, "text": " x", "sum_logprob": -2.0},
                {"tokens": [], "text": "y", "sum_logprob": -2.0},
            ],
        }
    ]
    rescored = Hypothesis("x", {"am": -1.0, "lm": 0.0, TOTAL: -3.0}, {"tokens": "▁x"})
    whisper.write([NBest("a", (rescored,))], path)
    assert json.loads(path.read_text()) == [
        {"utt": "a", "hypotheses": [{"text": "x", "sum_logprob": -3.0}]}
    ]


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ('[\n{"utt": }]', ":2: not JSON"),
        ("{}", "the file is {}"),
        ("[3]", "list 1: it is 3"),
        ('[{"hypotheses": []}]', "key 'utt' is missing"),
        ('[{"utt": "a"}]', "key 'hypotheses' is missing"),
        (
            '[{"utt": "a", "hypotheses": []}, {"utt": "a", "hypotheses": []}]',
            "list 2: utterance 'a' occurs a second time",
        ),
        ('[{"utt": "a", "hypotheses": [3]}]', "hypothesis 1: it is 3"),
        ('[{"utt": "a", "hypotheses": [{}]}]', "key 'text' is missing"),
        ('[{"utt": "a", "hypotheses": [{"text": "x", "score": "1"}]}]', "score 'score' is"),
        (
            '[{"utt": "a", "hypotheses": [{"text": "x", "score": 1, "sum_logprob": 1}]}]',
            "has sum_logprob and score; give one",
        ),
        (
            '[{"utt": "a", "hypotheses": [{"text": "x", "score": 1, "tokens": "ab"}]}]',
            "'tokens' is",
        ),
        (
            '[{"utt": "a", "hypotheses": [{"text": "x", "score": 1, "tokens": true}]}]',
            "'tokens' is true",
        ),
        (
            '[{"utt": "a", "hypotheses": [{"text": "x", "score": 1, "tokens": -1}]}]',
            "'tokens' is -1",
        ),
        (
            '[{"utt": "a", "hypotheses": [{"text": "x", "score": 1e308, "tokens": 100}]}]',
            "times its tokens is inf",
        ),
        (
            (
                '[{"utt": "a", "hypotheses": [{"text": "", "score": 1, "tokens": 9}, {"text": "",'
                ' "score": 1}]}]'
            ),
            "ones score and tokens",
        ),
        (
            '[{"utt": "a", "hypotheses": [{"text": "x", "score": 1}, {"text": "x"}]}]',
            "hypothesis 2 has no score, earlier ones score",
        ),
        (
            (
                '[{"utt": "a", "hypotheses": [{"text": "x", "score": 1, "tokens": 1,'
                ' "length_penalty": "x"}]}]'
            ),
            "score 'length_penalty' is",
        ),
    ],
)
def test_refuses(tmp_path, content, cause):
    path = tmp_path / "n.json"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        list(whisper.read(path))
    message = str(caught.value)
    assert (
        message.startswith(str(path))
        and cause in message
        and "; " in message
        and "\n" not in message
    )
