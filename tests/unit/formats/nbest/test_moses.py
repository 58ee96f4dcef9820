from pathlib import Path

import pytest

from lmtools.base.errors import UserError
from lmtools.formats import FORMATS, detect
from lmtools.types import TOTAL, Hypothesis, NBest

REAL = Path(__file__).resolve().parents[5] / "shared/data/formats/moses.nbest.xz"
moses = FORMATS["moses"]

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
    names = ("d0", "d1", "lm0", "lm1", "w", "tm0_0", "tm0_1", "am")
    scores = dict(zip(names, (0, -7.5, -41.3, -40.4, -3, 1, 2, -14.6), strict=True))
    hyp = Hypothesis("blue finch .", scores)
    assert list(moses.read(path)) == [NBest("0", (hyp,))]
    assert detect(path) == "moses"


def test_writes_each_value_under_its_name(tmp_path):
    path = tmp_path / "n.best"
    path.write_text(NEW)
    moses.write(list(moses.read(path)), tmp_path / "again")
    wanted = NEW.replace("TM0= -6.7 -1.2", "TM0_0= -6.7 TM0_1= -1.2")
    assert (tmp_path / "again").read_text() == wanted
    assert list(moses.read(tmp_path / "again")) == list(moses.read(path))


def test_a_rescored_total_takes_the_place_of_the_old_which_stays_as_a_feature(tmp_path):
    hyp = Hypothesis("x", {"LM0": -1.5, "am": -2.5, TOTAL: -9})
    moses.write([NBest("0", (hyp,))], tmp_path / "n")
    assert (tmp_path / "n").read_text() == "0 ||| x ||| LM0= -1.5 am= -2.5 ||| -9\n"
    assert next(moses.read(tmp_path / "n")).hyps == (hyp,)


def test_left_out_sentences_are_empty_lists(tmp_path):
    texts = {"3": ["a"], "4": [], "5": [], "6": [""]}
    lists = [NBest(utt, tuple(map(Hypothesis, rows))) for utt, rows in texts.items()]
    moses.write(lists, tmp_path / "n")
    assert list(moses.read(tmp_path / "n")) == lists
    assert list(moses.read(tmp_path / "n", gaps="skip")) == [lists[0], lists[3]]


def test_a_sentence_that_was_taken_for_left_out_is_not_given_twice(tmp_path):
    path = tmp_path / "n"
    path.write_text("0 ||| a\n3 ||| b\n1 ||| c\n")
    with pytest.raises(UserError, match="n:3: sentence 1 follows 3; sort"):
        list(moses.read(path))
    assert [nbest.utt for nbest in moses.read(path, gaps="skip")] == ["0", "3", "1"]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("the red |0-1| fox |2-2|", "the red fox"),
        ("the |0-0,wa=0-0 1-1,total=-1.2,LM0= -3 TM0= -1 -2| fox |1-1,LM0= -2|", "the fox"),
        ("fin@@ |0-0| ch |1-1|", "fin@@ ch"),
        ("|0-0|", ""),
        ("a |0-1| b", "a |0-1| b"),  # no trace, which ends in a segment
    ],
)
def test_segments_of_a_trace_are_no_words(tmp_path, text, spoken):
    path = tmp_path / "n"
    path.write_text(f"0 ||| {text} ||| LM0= -4 ||| -1\n")
    (nbest,) = moses.read(path)
    assert nbest.hyps[0].text == spoken and not nbest.hyps[0].extra
    (joined,) = moses.read(path, bpe="subword_nmt")
    assert "@@" not in joined.hyps[0].text


SPARSE = """0 ||| a ||| Glue=2 tm_0=-1 tm_1=-2 Pass=1 ||| -1
0 ||| b ||| Glue=1 tm_0=-3 ||| -1.5
1 ||| c ||| tm_1=-4 Glue=1 Late= 3 ||| -2
"""


def test_an_absent_sparse_feature_is_0(tmp_path):
    path = tmp_path / "n"
    path.write_text(SPARSE)
    found = list(moses.read(path))
    names = ["Glue", "tm_0", "tm_1", "Pass", "Late", "am"]
    assert [[hyp.scores[name] for name in names] for nbest in found for hyp in nbest.hyps] == [
        [2, -1, -2, 1, 0, -1],
        [1, -3, 0, 0, 0, -1.5],
        [1, 0, -4, 0, 3, -2],
    ]
    moses.write(found, tmp_path / "again")
    assert "0 ||| b ||| Glue= 1 tm_0= -3 tm_1= 0 Pass= 0" in (tmp_path / "again").read_text()
    again = list(moses.read(tmp_path / "again"))
    assert [[hyp.scores for hyp in nbest.hyps] for nbest in again] == [
        [hyp.scores for hyp in nbest.hyps] for nbest in found
    ]


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        ("0 ||| b ||| TM= -1 ||| -1", "hypothesis 2 has scores"),  # another number of values
        ("0 ||| b ||| ||| -1", "hypothesis 2 has scores"),  # no features at all
        ("0 ||| b ||| LM= -1 TM= -1 -2", "hypothesis 2 has scores"),  # no total
        (
            "".join(f"0 ||| b ||| LM= 1 TM= 0 0 x{i}= 1 ||| -1\n" for i in range(201)),
            "n: 201 sparse features, more than 200",
        ),
    ],
)
def test_what_is_not_sparse_is_not_made_up(tmp_path, second, cause):
    (tmp_path / "n").write_text(f"0 ||| a ||| LM= -1 TM= -1 -2 ||| -1\n{second}\n")
    with pytest.raises(UserError, match=cause):
        list(moses.read(tmp_path / "n"))


@pytest.mark.skipif(not REAL.exists(), reason="no list that Moses wrote")
def test_a_list_that_moses_wrote(tmp_path):
    found = list(moses.read(REAL))
    assert (len(found), {len(nbest.hyps) for nbest in found}) == (100, {100})
    moses.write(found, tmp_path / "n")
    assert list(moses.read(tmp_path / "n")) == found
