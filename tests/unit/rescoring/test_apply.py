import pytest

from lmtools.base.errors import UserError
from lmtools.rescoring.features import gather
from lmtools.rescoring.lists import rescore
from lmtools.rescoring.weights import Dev, Weights
from lmtools.types import Hypothesis, NBest

HYPS = [("x y", -1.0, -9.0), ("x", -2.0, -1.0), ("z", -2.0, -1.0)]
NBESTS = [
    NBest("a", tuple(Hypothesis(text, {"am": am, "lm": lm}) for text, am, lm in HYPS)),
    NBest("b", (), "r"),
]


def weights(**features):
    return Weights("wer", features, "am", Dev("dev.jsonl", "ab", 3, 20.0, 19.0))


def test_lists_are_sorted_by_total_and_equals_keep_their_order():
    lists = rescore(NBESTS, gather(NBESTS, {}, "n", derived=()), weights(lm=0.5, am=1.0), "n")
    assert [hyp.text for hyp in lists[0].hyps] == ["x", "z", "x y"]
    assert dict(lists[0].hyps[2].scores) == {"am": -1.0, "lm": -9.0, "total": -5.5}
    assert lists[1] == NBESTS[1]


@pytest.mark.parametrize(
    "features, message",
    [
        ({"am": 1.0, "lm": 1.0, "tta": 1.0}, "feature tta: {} with am, lm, tta; give --scores"),
        ({"am": 1.0}, "weight for lm: {} with am; leave it out"),
    ],
)
def test_features_and_weights_must_be_the_same(features, message):
    told = f"n: no {message.format('the weights were tuned on dev.jsonl')}"
    with pytest.raises(UserError, match=told):
        rescore(NBESTS, gather(NBESTS, {}, "n", derived=()), weights(**features), "n")
