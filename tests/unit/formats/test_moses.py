import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import detect, marian, moses, registry
from lmtools.types import EMPTY, TOTAL, Hypothesis, NBest

REAL = Path(__file__).resolve().parents[4] / "shared/data/formats/moses.nbest.xz"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(
    lambda text: " ".join(text.replace("|||", "").split())
)
ids = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff|"),
    min_size=1,
    max_size=6,
)
names = st.sampled_from(
    [
        "LM0",
        "TM0_0",
        "TM0_1",
        "TM0_2",
        "TM0",
        "x_1",
        "x_0",
        "x_0_0",
        "x_0_1",
        "am",
        TOTAL,
        "é:",
        "system:a",
        "5",
    ]
)
floats = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def lists(draw):
    columns = draw(st.sets(names, max_size=5))
    hyps = st.builds(Hypothesis, texts, st.fixed_dictionaries(dict.fromkeys(columns, floats)))
    return [
        NBest(utt, tuple(draw(st.lists(hyps, min_size=1, max_size=3))))
        for utt in draw(st.lists(ids, unique=True, max_size=3))
    ]


def bare(nbests):
    """The lists without extras, a total that stands alone called `am`."""

    def scores(hyp):
        return (
            {"am": hyp.scores[TOTAL]} | {n: v for n, v in hyp.scores.items() if n != TOTAL}
            if only_total(hyp)
            else dict(hyp.scores)
        )

    def only_total(hyp):
        return TOTAL in hyp.scores and "am" not in hyp.scores

    return [
        NBest(nbest.utt, tuple(Hypothesis(hyp.text, scores(hyp)) for hyp in nbest.hyps))
        for nbest in nbests
    ]


@pytest.mark.parametrize("module", [moses, marian])
@settings(max_examples=60, deadline=None)
@given(nbests=lists())
def test_round_trip(tmp_path_factory, module, nbests):
    path = tmp_path_factory.mktemp("bars") / "n"
    module.write(nbests, path)
    found = list(module.read(path, gaps="skip"))
    assert bare(found) == bare(nbests)
    again = path.with_name("again")
    module.write(found, again)
    assert again.read_bytes() == path.read_bytes()


NEW = (
    "0 ||| blue finch . ||| LM0= -41.3 TM0= -6.7 -1.2 WordPenalty0= -3 ||| -14.6 ||| 0-0 1-1"
    " ||| x\n"
)
OLD = "0||| blue  finch .  ||| d: 0 -7.5 lm: -41.3 -40.4 w: -3 tm0: 1 2 ||| -14.6\n"


def test_reads_new_and_old_features(tmp_path):
    path = tmp_path / "n.best"
    path.write_text(NEW)
    scores = {"LM0": -41.3, "TM0_0": -6.7, "TM0_1": -1.2, "WordPenalty0": -3, "am": -14.6}
    hyp = Hypothesis("blue finch .", scores, {"alignment": "0-0 1-1 ||| x"})
    assert list(moses.read(path)) == [NBest("0", (hyp,))]
    assert detect(path) == "moses"
    path.write_text(OLD)
    scores = {
        "d0": 0,
        "d1": -7.5,
        "lm0": -41.3,
        "lm1": -40.4,
        "w": -3,
        "tm0_0": 1,
        "tm0_1": 2,
        "am": -14.6,
    }
    assert list(moses.read(path)) == [
        NBest("0", (Hypothesis("blue finch .", scores, {"layout": "d:2 lm:2 w:1 tm0:2"}),))
    ]
    assert detect(path) == "moses"


@pytest.mark.parametrize("line", [NEW, OLD.replace("0|||", "0 |||").replace("  ", " ")])
def test_writes_what_it_read(tmp_path, line):
    path = tmp_path / "n.best"
    path.write_text(line)
    moses.write(list(moses.read(path)), tmp_path / "again")
    assert (tmp_path / "again").read_text() == line


def test_a_rescored_total_takes_the_place_of_the_old_which_stays_as_a_feature(tmp_path):
    moses.write(
        [NBest("0", (Hypothesis("x", {"LM0": -1.5, "am": -2.5, TOTAL: -9}),))], tmp_path / "n"
    )
    assert (tmp_path / "n").read_text() == "0 ||| x ||| LM0= -1.5 am= -2.5 ||| -9\n"
    assert dict(next(moses.read(tmp_path / "n")).hyps[0].scores) == {
        "LM0": -1.5,
        "am": -2.5,
        TOTAL: -9,
    }


def test_left_out_sentences_are_empty_lists(tmp_path):
    lists = [
        NBest("3", (Hypothesis("a"),)),
        NBest("4", ()),
        NBest("5", ()),
        NBest("6", (Hypothesis(""),)),
    ]
    moses.write(lists, tmp_path / "n")
    assert list(moses.read(tmp_path / "n")) == lists
    assert list(moses.read(tmp_path / "n", gaps="skip")) == [lists[0], lists[3]]


def test_a_sentence_that_was_taken_for_left_out_is_not_given_twice(tmp_path):
    path = tmp_path / "n"
    path.write_text("0 ||| a\n3 ||| b\n1 ||| c\n")
    with pytest.raises(UserError, match="n:3: sentence 1 follows 3; sort"):
        list(moses.read(path))
    assert [nbest.utt for nbest in moses.read(path, gaps="skip")] == ["0", "3", "1"]


def test_joins_and_restores_subword_marks(tmp_path):
    path = tmp_path / "n"
    path.write_text("0 ||| blue fin@@ ch ||| F= 1 ||| -1\n")
    found = list(
        registry.find_format(
            "moses:bpe=subword_nmt", {"moses": registry.format_of(moses, "")}
        ).read(path)
    )
    assert found[0].hyps[0].text == "blue finch"
    moses.write(found, tmp_path / "again")
    assert (tmp_path / "again").read_text() == path.read_text()


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("blue finch", "n:2: no `|||`"),
        (" ||| blue ||| d: 1 ||| 1", "n:2: utterance id '' is empty"),
        ("1 2 ||| blue ||| LM0= 1 ||| 1", "n:2: utterance id '1 2'"),
        ("1 ||| blue ||| LM0= 1 ||| nan", "n:2: the total is 'nan'"),
        ("1 ||| blue ||| LM0= 1e400 ||| 1", "n:2: feature 'LM0' is '1e400'"),
        ("1 ||| blue ||| -1 LM0= 1 ||| 1", "n:2: feature value '-1' has no name"),
        ("1 ||| blue ||| LM0= TM0= 1 ||| 1", "n:2: feature 'LM0' has no value"),
        ("1 ||| blue ||| LM0= 1 LM0= 2 ||| 1", "n:2: two feature values would be called 'LM0'"),
        ("1 ||| blue ||| LM0= 1 LM0= 2 ||| 1", "rename"),
        ("1 ||| blue ||| = 1 ||| 1", "n:2: score name ''"),
        (
            "1 ||| blue ||| TM0= 1 ||| 1",
            "n:2: hypothesis 1 has scores TM0, am, earlier ones LM0, am",
        ),
        ("99999999 ||| blue ||| LM0= 1 ||| 1", "n:2: sentence 99999999 follows 0"),
        (
            "1 ||| x ||| LM0= 1 ||| 1\n0 ||| x ||| LM0= 1 ||| 1",
            "n:3: utterance '0' occurs a second time",
        ),
    ],
)
def test_refuses(tmp_path, line, cause):
    path = tmp_path / "n"
    path.write_text(f"0 ||| blue ||| LM0= 1 ||| 1\n{line}\n")
    with pytest.raises(UserError) as error:
        list(moses.read(path))
    assert cause in str(error.value)


@pytest.mark.parametrize("hyp", [Hypothesis("a ||| b"), Hypothesis("a", {"x|||y": 1})])
def test_refuses_to_write_what_reads_as_something_else(tmp_path, hyp):
    with pytest.raises(UserError, match="&#124;"):
        moses.write([NBest("0", (hyp,))], tmp_path / "n")


def test_refuses_an_empty_list_that_reading_could_not_find(tmp_path):
    with pytest.raises(UserError, match="utterance 'zed': has no hypothesis"):
        moses.write([NBest("zed", ())], tmp_path / "n")


def test_pieces_of_a_text_that_was_edited_since_are_not_written(tmp_path):
    moses.write([NBest("0", (Hypothesis("a", EMPTY, {"pieces": "x@@ y"}),))], tmp_path / "n")
    assert next(moses.read(tmp_path / "n")).hyps[0].text == "a"


@pytest.mark.skipif(not REAL.exists(), reason="no list that Moses wrote")
def test_a_list_that_moses_wrote(tmp_path):
    found = list(moses.read(REAL))
    assert (len(found), {len(nbest.hyps) for nbest in found}) == (100, {100})
    moses.write(found, tmp_path / "n")
    with lzma.open(REAL, "rt") as stream:
        want = [" ".join(line.replace("||| ", " ||| ", 1).split()) for line in stream]
    assert (tmp_path / "n").read_text().splitlines() == want
