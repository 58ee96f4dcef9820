"""A service chooses what `lmtools score` and `lmtools rescore` choose, with the same scores."""

import json

import numpy as np
import pytest
from toys import sentences

import lmtools
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.cli import main
from lmtools.ngram import build
from lmtools.serve.chooser import Chooser
from lmtools.text import Normaliser

SYSTEMS = {
    "ngram": {"new": "{ngram}"},
    "causal": {"new": "{causal}"},
    "mixture": {"new": "mix:{causal}=0.4,{ngram}=0.6"},
    "two": {"tta": "{tta}", "new": "{ngram},oov_penalty=2"},
}
USUAL = Computing("cpu", cache="none")


@pytest.fixture(scope="module")
def home(tiny, trained, tmp_path_factory):
    """dev.jsonl and test.jsonl, the second with a list of one hypothesis twice, and an n-gram."""
    home = tmp_path_factory.mktemp("serve")
    build([tiny / "train.txt"], 2, home / "ngram", Normaliser(), kenlm="none")
    rng = np.random.default_rng(3)
    for seed, name in enumerate(("dev", "test")):
        lists = []
        for number, text in enumerate(sentences(20, 10 + seed, 8)):
            texts = [" ".join(rng.permutation(text.split())), text, text + " stone", text]
            am = rng.normal(size=4).round(1)
            lists.append(lmtools.NBest.of(f"u-{number:02}", texts, text, am=am[[0, 1, 2, 1]]))
        lmtools.write(lists, home / f"{name}.jsonl")
    return home


def run(home, lms, more=()) -> str:
    """Score and tune on dev, score and rescore test; the weights."""
    columns = {}
    for name in ("dev", "test"):
        nbest = ["--nbest", f"{home}/{name}.jsonl"]
        given = []
        for column, lm in lms.items():
            out = f"{home}/{column}.{name}.scores"
            words = ["--lm", lm, "--cache", "none", "--device", "cpu", "--out", out]
            assert main(["score", *nbest, *words]) == 0
            given += [f"{column}{end}={out}" for end in ("", *more)]
        columns[name] = [*nbest, "--scores", *given]
    weights = f"{home}/w.json"
    assert main(["tune", *columns["dev"], "--metric", "wer", "--out", weights]) == 0
    outs = ["--out", f"{home}/c.txt", "--nbest-out", f"{home}/c.jsonl"]
    assert main(["rescore", *columns["test"], "--weights", weights, *outs]) == 0
    return weights


@pytest.mark.parametrize("system", SYSTEMS)
def test_answers_are_those_of_the_commands(system, home, trained):
    places = {"ngram": home / "ngram", **trained}
    lms = {name: lm.format(**places) for name, lm in SYSTEMS[system].items()}
    weights = run(home, lms, ["/token"] * (system == "causal"))
    specs = {name: LMSpec.parse(lm) for name, lm in lms.items()}
    chooser = Chooser(specs, weights, USUAL)
    assert not chooser.warnings
    lines = (home / "test.jsonl").read_text().splitlines()
    wanted = [json.loads(line) for line in (home / "c.jsonl").read_text().splitlines()]
    (answer,) = chooser.answer([f"[{','.join(lines)}]".encode()])
    assert (answer.lists, answer.hypotheses) == (20, 80)
    answers = json.loads(answer.content)
    texts = (home / "c.txt").read_text().splitlines()
    assert [f"{one['utt']} {one['chosen']}" for one in answers] == texts
    for one, line in zip(answers, lines, strict=True):
        given = json.loads(line)["hyps"]
        assert [given[rank - 1]["text"] for rank in one["order"]] == [
            hyp["text"] for hyp in one["hyps"]
        ]
        assert sorted(one.pop("order")) == [1, 2, 3, 4] and one.pop("chosen")
    assert answers == wanted  # to the bit
    alone = [json.loads(one.content) for one in chooser.answer([x.encode() for x in lines])]
    assert [one["hyps"][0]["text"] for one in wanted] == [one["chosen"] for one in alone]
    for one, whole in zip(alone, wanted, strict=True):
        for hyp, other in zip(one["hyps"], whole["hyps"], strict=True):
            assert hyp["scores"] == pytest.approx(other["scores"], abs=1e-4)


@pytest.fixture(scope="module")
def chooser(home):
    lms = {"new": str(home / "ngram")}
    return Chooser({"new": LMSpec(lms["new"])}, run(home, lms), USUAL)


GOOD = '{"utt": "a", "hyps": [{"text": "the king", "scores": {"am": -1}}]}'
WRONG = {
    "": "not JSON",
    "{": "not JSON",
    "7": "is 7; expected an object",
    "[]": "no utterances",
    "[" * 100_000: "nested too deeply",
    '{"utt": "a"}': "key 'hyps' is missing",
    GOOD.replace("-1", "NaN"): "score 'am' is NaN; expected a finite number",
    GOOD.replace("-1", "1e999"): "score 'am' is Infinity",
    GOOD.replace("-1", '"-1"'): "expected a finite number",
    GOOD.replace('"the king"', "[7]"): "'text' is [7]; expected a text",
    GOOD.replace('"am"', '"other"'): "no feature am",
    GOOD.replace(', "scores": {"am": -1}', ""): "no feature am",
    GOOD.replace("the king", "\\ud800"): "half a surrogate pair",
    f"[{GOOD}, {GOOD}]": "occurs a second time",
    f"[{GOOD}, 7]": "list 2: the line is 7",
    "\u00ff": None,
}


def test_a_wrong_request_is_told_why_and_harms_no_other(chooser):
    bodies = [text.encode("utf-8" if why else "latin-1") for text, why in WRONG.items()]
    between = [part for body in bodies for part in (body, GOOD.encode())]
    answers = chooser.answer(between)
    for answer, why in zip(answers[::2], WRONG.values(), strict=True):
        assert type(answer) is UserError and (why or "not UTF-8") in str(answer), why
        assert str(answer).startswith("the request: ") and ";" in str(answer)
    alone = chooser.answer([GOOD.encode()])
    assert json.loads(alone[0].content)["order"] == [1] and alone * len(bodies) == answers[1::2]


def test_a_list_without_hypotheses_stays(chooser):
    (answer,) = chooser.answer([f'[{{"utt": "e", "hyps": []}}, {GOOD}]'.encode()])
    empty, other = json.loads(answer.content)
    assert empty == {"utt": "e", "chosen": "", "order": [], "hyps": []}
    assert other["chosen"] == "the king"


def test_default_weights_take_whatever_scores_lists_have(home):
    chooser = Chooser({"new": LMSpec(str(home / "ngram"))}, "default:whisper", USUAL)
    more = GOOD.replace('"am": -1', '"am": -1, "avg": 2')
    for body in (GOOD, more):
        (answer,) = chooser.answer([body.encode()])
        assert json.loads(answer.content)["chosen"] == "the king"


def test_requests_together_are_answered_as_alone(home):
    """Of one utterance and several, empty lists, and scores of other names and in another order."""
    chooser = Chooser({"new": LMSpec(str(home / "ngram"))}, "default:whisper", USUAL)
    lines = (home / "test.jsonl").read_text().replace("u-", "u").splitlines()[:4]
    same = [line.replace("u0", "u").replace("u1", "u") for line in lines]
    more = [line.replace('"am":', '"avg": 0.5, "am":') for line in lines]
    other = [line.replace('"am":', '"am": 0.5, "avg":') for line in lines]
    bodies = [*lines, f"[{','.join(more)}]", *other, *same, '{"utt": "e", "hyps": []}', *more, GOOD]
    bodies = [body.encode() for body in bodies]
    assert chooser.answer(bodies) == [chooser.answer([body])[0] for body in bodies]


@pytest.mark.parametrize(
    ("lms", "why"),
    [
        ({"other": "{}/ngram"}, "no weight for 'other'"),
        ({"new": "{}/ngram,oov_penalty=3"}, "not of what .*w.json was tuned on as 'new': oov"),
        ({"new": "{}/none"}, "no such language model"),
    ],
)
def test_models_that_are_not_those_of_the_weights_are_refused(lms, why, home, chooser):
    specs = {name: LMSpec.parse(lm.format(home)) for name, lm in lms.items()}
    with pytest.raises(UserError, match=why):
        Chooser(specs, chooser.path, USUAL)
