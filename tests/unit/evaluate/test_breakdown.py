import numpy as np
import pytest
from needs import needs

from lmtools.base.errors import UserError
from lmtools.evaluate.corpus import References
from lmtools.evaluate.show import count_words, find_namer, name_speaker, split_evaluation

REFS = {"ann-1": "a b c", "ann-2": "a", "bob_1": "a b c d e f g"}
METRICS = ["wer", pytest.param("wer:rules=sclite", marks=needs("nist"))]
HYPS = {"ann-1": "a x c d", "ann-2": "", "bob_1": "a b c d e f"}


@pytest.mark.parametrize("metric", METRICS)
def test_parts_add_up(metric):
    result = References(REFS, metric).evaluate(HYPS)
    for by in ("speaker", "length"):
        parts = split_evaluation(result, list(REFS), find_namer(by, {}))
        assert np.array_equal(sum(part.total for part in parts), result.total)
        assert [part.utterances for part in parts] == [2, 1]
    assert [part.name for part in parts] == ["0-5", "6-10"]
    assert parts[0].score == 75 and parts[1].score == pytest.approx(100 / 7)


@pytest.mark.parametrize("metric", METRICS)
def test_errors_by_word(metric):
    errors = count_words(References(REFS, metric), HYPS)
    assert errors.confusions == {("b", "x"): 1}
    assert errors.insertions == {"d": 1}
    assert errors.deletions == {"a": 1, "g": 1}
    assert errors.rank_words() == [("a", 1, 3), ("b", 1, 2), ("g", 1, 1)]


def test_speakers(tmp_path):
    ids = ["sw1_2-3", "a-b_c", "alone", "_x"]
    assert list(map(name_speaker, ids)) == ["sw1", "a", "alone", "_x"]
    (tmp_path / "utt2spk").write_text("ann-1 s1\nann-2 s2\n")
    namer = find_namer(f"speaker={tmp_path / 'utt2spk'}", {})
    assert namer("ann-2", np.zeros(4)) == "s2"
    with pytest.raises(UserError, match="utt2spk: has no session of 'bob_1'"):
        find_namer(f"session={tmp_path / 'utt2spk'}", {})("bob_1", 0)


@pytest.mark.parametrize("by", ["label", "colour", "length=3", ""])
def test_unknown_parts(by):
    with pytest.raises(UserError, match=f"--by {by}: parts are speaker"):
        find_namer(by, {})
