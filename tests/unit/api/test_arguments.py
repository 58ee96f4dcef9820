"""Whatever a program gives in the place of an argument: the right result, or a line that names the
argument and the place, never an error from the inside.
"""

import dataclasses
import inspect
import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest

import lmtools
from lmtools import Arc, Final, Hypothesis, Lattice, NBest, ScoreTable, UserError
from lmtools.base.errors import in_keywords

ARPA = """\\data\\
ngram 1=5
ngram 2=2

\\1-grams:
-99\t<s>\t-0.3
-1\t</s>
-1\t<unk>
-0.6\tthe\t-0.2
-0.8\tfox

\\2-grams:
-0.2\t<s> the
-0.3\tthe fox

\\end\\
"""
NAN = float("nan")
JUNK = {
    "None": None,
    "NaN": NAN,
    "int": 7,
    "minus": -1,
    "float": 1.5,
    "infinity": float("inf"),
    "huge": 10**30,
    "True": True,
    "str": "the fox",
    "empty str": "",
    "half a pair": "\ud800",
    "bytes": b"the fox",
    "empty list": [],
    "list of words": ["the", "fox"],
    "list of lists": [["the", "fox"], ["a"]],
    "numbers": [1.0, 2.0],
    "None in a list": ["the fox", None],
    "NaN in a list": ["the fox", NAN],
    "int in a list": [7],
    "bytes in a list": [b"the fox"],
    "mixed lists": [NBest("u", ()), "the fox"],
    "dict": {"u1": "the fox"},
    "dict of None": {"u1": None},
    "dict of NaN": {"u1": NAN},
    "dict of ints": {1: 2},
    "dict of numbers": {"am": 1.0},
    "set": {"the", "fox"},
    "object": object(),
    "type": NBest,
    "function": len,
    "array of objects": np.array(["the fox", NAN], dtype=object),
    "array of bytes": np.array([b"the fox"]),
    "array of numbers": np.array([1.0, NAN]),
    "array 2-D": np.array([["the", "fox"], ["a", "b"]]),
    "array 0-D": np.array(1.0),
    "Hypothesis": Hypothesis("the fox"),
    "NBest": NBest("u1", (Hypothesis("the fox"),), "the fox"),
    "Arc": Arc(0, 1, "a"),
}


def make_lists():
    return [
        NBest.of("u1", ["the red vox", "the red fox"], "the red fox", am=[-1.0, -1.5]),
        NBest.of("u2", ["the fox", "a fox"], "a fox", am=[-1.0, -1.2]),
    ]


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    path = tmp_path_factory.mktemp("arpa") / "lm.arpa"
    path.write_text(ARPA)
    return lmtools.load(path)


@pytest.fixture(scope="module")
def calls(lm, tmp_path_factory):
    """Name -> (function, arguments that are right)."""
    home, lists = tmp_path_factory.mktemp("files"), make_lists()
    weights = lmtools.tune(lists, {"new": lm.score_lists(lists)})
    lmtools.write(lists, home / "l.jsonl")
    weights.save(home / "w.json")
    arcs = [Arc(0, 1, "a", {"am": -1.0}), Arc(1, 2, "b", {"am": -2.0})]
    lattice = Lattice.of("u", 3, 0, arcs, [Final(2)])
    evaluation = lmtools.wer(lists)
    tune = {"columns": {"new": [[1.0, 2.0], [0.5, 3.0]]}, "lengths": ["words"], "fix": {"am": 1.0}}
    tune |= {"reference": "am", "negative": ["new"], "folds": 2, "speakers": None, "seed": 0}
    tune |= {"objective": "exact", "form": "linear", "metric": "wer"}
    given = {"lattice": lattice, "weights": {"am": 1.0}}
    more = {"n": 2, "ref": ["a", "b"], "scale": 1.0, "beam": 1.0, "arcs": 3, "density": 2.0}
    more |= {"states": 10}
    algorithms = {}
    for name in lmtools.lattice.__all__:
        function = getattr(lmtools.lattice, name)
        if inspect.isfunction(function):
            wanted = inspect.signature(function).parameters
            own = {key: value for key, value in (given | more).items() if key in wanted}
            own |= {"ref": "a b"} if name == "as_nbest" else {}
            algorithms[f"lattice.{name}"] = function, own
    row = {"source": 0, "target": 1, "word": "a"}
    table = {"log_prob": {"u1": np.zeros(2), "u2": np.zeros(2)}, "tokens": {}}
    return algorithms | {
        "load": (lmtools.load, {"lm": lm.scorer.spec.lm, "threads": 1, "precision": "float32",
            "device": "cpu", "engine": "auto", "cache": "none", "oov_penalty": 0.0, "nj": 1,
            "rows": None, "noise": None, "normalise": "full"}),
        "LM": (lmtools.LM, {"spec": lm.scorer.spec, "computing": lm.computing}),
        "LM.score": (lm.score, {"texts": ["the fox"], "sources": None}),
        "LM.token_scores": (lm.token_scores, {"texts": ["the fox"]}),
        "LM.score_lists": (lm.score_lists, {"lists": lists, "sources": None, "reverse": False}),
        "LM.rescore": (lm.rescore, {"nbest": lists, "weights": weights}),
        "read": (lmtools.read, {"path": home / "l.jsonl", "kind": NBest, "form": None}),
        "stream": (lambda **own: [*lmtools.stream(**own)],
            {"path": home / "l.jsonl", "kind": NBest, "form": None}),
        "write a list": (lambda **own: lmtools.write([NBest("u", [Hypothesis("a", **own)])], "o"),
            {"scores": {"am": 1.0}, "extra": {}}),
        "write": (lmtools.write, {"items": lists, "path": home / "o.jsonl", "form": "jsonl"}),
        "measure": (lmtools.measure, {"refs": ["a b"], "hyps": ["a"], "metric": "wer"}),
        **{name: (getattr(lmtools, name), {"refs": ["a b"], "hyps": ["a"]})
            for name in ("wer", "cer", "bleu")},
        "tune": (lmtools.tune, {"lists": lists, **tune}),
        "tune by speaker": (lmtools.tune, {"lists": lists, "folds": "speaker",
            "speakers": {"u1": "a", "u2": "b"}}),
        "rescore": (lmtools.rescore, {"lists": lists, "weights": weights,
            "columns": {"new": lm.score_lists(lists)}}),
        "NBest.of": (NBest.of, {"utt": "u", "texts": ["a", "b"], "ref": "a", "am": [1, 2]}),
        "NBest": (NBest, {"utt": "u", "hyps": (Hypothesis("a"),), "ref": "a", "extra": {},
            "more_refs": ("b",)}),
        "Hypothesis": (Hypothesis, {"text": "a", "scores": {"am": 1.0}, "extra": {}}),
        "Lattice.of": (Lattice.of, {"utt": "u", "states": 3, "start": 0, "arcs": arcs,
            "finals": [Final(2)], "times": None, "header": {}}),
        "Lattice.take": (lambda arcs, finals: lattice.take(arcs, finals),
            {"arcs": [0, 1], "finals": [0]}),
        "rows of a Lattice": (lambda **own: Lattice.of("u", 3, 0, [Arc(**own)], []),
            {**row, "scores": {"am": 1.0}, "extra": {}}),
        "ends of a Lattice": (lambda **own: Lattice.of("u", 3, 0, [], [Final(**own)]),
            {"state": 2, "scores": {"am": 1.0}, "extra": {}}),
        "ScoreTable": (lambda **own: lmtools.tune(lists, {"a": ScoreTable(**own)}),
            {**table, "signature": {}, "lists": None}),
        "Evaluation.interval": (evaluation.interval, {"seed": 1}),
        "Weights.save": (weights.save, {"path": home / "w2.json"}),
        "Weights.load": (lmtools.Weights.load, {"path": home / "w.json"}),
    }  # fmt: skip


def attempt(function, own):
    """None for a result, else the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(**own)
        except Exception as error:
            return error
    return None


def test_whatever_is_given_is_taken_or_named(calls, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    wrong, places = [], ("the fox:", "\\ud800:")  # of files
    for name, (function, own) in calls.items():
        assert attempt(function, own) is None, name
        for argument, (kind, junk) in itertools.product(own, JUNK.items()):
            for value in (junk, (one for one in junk)) if isinstance(junk, list) else (junk,):
                others = (other for other in own if len(other) > 2)
                names = [argument, "score ", *others, "column", *places]
                error = attempt(function, own | {argument: value})
                if error and not isinstance(error, UserError):
                    wrong.append(f"{name}: {argument} {kind}: {type(error).__name__}: {error}")
                elif error and not any(name in str(error) for name in names):
                    wrong.append(f"{name}: {argument} {kind}: not named: {error}")
                assert len(str(error)) <= 500
    assert not wrong, "\n".join(wrong)


def test_generators_arrays_and_keys_are_taken(lm, tmp_path):
    lists, texts = make_lists(), ["the fox", "a fox", ""]
    expected = lm.score(texts)
    for given in (iter(texts), tuple(texts), np.array(texts), dict.fromkeys(texts).keys()):
        assert np.array_equal(lm.score(given), expected)
    found = lm.token_scores(iter(texts))
    assert [one.log_probs.sum() for one in found] == pytest.approx(expected.tolist())
    table = lm.score_lists(iter(lists))
    assert table.lists == lm.score_lists(lists).lists
    weights = lmtools.tune(iter(lists), {"new": table})
    assert weights == lmtools.tune(lists, {"new": table})
    rows = [[float(one) for one in table.log_prob[nbest.utt]] for nbest in lists]
    for column in (iter(rows), map(iter, rows), np.array(rows), [np.array(row) for row in rows]):
        assert lmtools.tune(lists, {"new": column}).features == weights.features
    best = lmtools.rescore(lists, weights, {"new": table})
    assert lmtools.rescore(iter(lists), weights, {"new": table}) == best
    assert lm.rescore(iter(lists), weights) == lm.rescore(lists, weights)
    assert lmtools.wer(iter(lists)).score == lmtools.wer(lists).score == 40
    assert lmtools.wer(iter(["a b", "c"]), iter(["a b", "d"])).score == pytest.approx(100 / 3)
    assert lmtools.wer({7: "a b", 8: "c"}, {7: "a"}).missing == (8,)
    several = lmtools.measure([["a b c d", "a c b d"]], ["a c b d"], "bleu")
    assert several.score == pytest.approx(100) and "nrefs:2" in several.signature
    numbers = np.array([-1, -2], dtype=np.float32)
    made = NBest.of(np.str_("u"), (text for text in ("a", "b")), am=iter(numbers))
    assert made == NBest("u", [Hypothesis("a", {"am": -1.0}), Hypothesis("b", {"am": -2.0})])
    assert type(made.utt) is type(made.hyps[0].text) is str and type(made.hyps) is tuple
    lmtools.write(iter(lists), tmp_path / "l.jsonl")
    assert lmtools.read(tmp_path / "l.jsonl") == lists


def test_lists_without_hypotheses_are_rescored_as_they_are(lm):
    lists = make_lists()
    weights = lmtools.tune(lists, {"new": lm.score_lists(lists)})
    empty = NBest.of("u3", [], am=[])
    assert lm.rescore(empty, weights) == empty and lm.rescore([empty], weights) == [empty]
    assert lm.rescore([*lists, empty], weights)[2] == empty


REFUSED = {
    "twice in wer": (lambda a, lm: lmtools.wer([a, a]), "refs[1]: utterance 'u1' occurs a second"),
    "fewer hypotheses": (
        lambda a, lm: lmtools.measure(["a b", "c d e"], ["a b"], "wer"),
        "2 references, 1 hypotheses",
    ),
    "by id and by place": (lambda a, lm: lmtools.wer([a], ["the red fox"]), "refs, hyps: one by"),
    "no lists": (lambda a, lm: lmtools.wer([]), "hyps: missing, and refs are empty"),
    "NaN reference": (
        lambda a, lm: dataclasses.replace(a, ref=NAN),
        "utterance 'u1': ref: nan (float) is not a text",
    ),
    "words in refs": (lambda a, lm: lmtools.wer([["a", "b"]], ["a b"]), "WER takes one"),
    "empty cell": (
        lambda a, lm: NBest.of("u", ["a", NAN], am=[1, 2]),
        "utterance 'u': texts[1]: nan (float) is not a text; an empty text is ''",
    ),
    "fewer scores": (
        lambda a, lm: NBest.of("u", ["a", "b"], am=[1]),
        "utterance 'u': am: 1 numbers for 2 texts",
    ),
    "number as id": (lambda a, lm: NBest.of(7, ["a"]), "utt: 7 (int) is not a text; write str("),
    "nothing": (lambda a, lm: lm.score(None), "texts: None is not a sequence of texts"),
    "bytes": (lambda a, lm: lm.score([b"x"]), "texts[0]: b'x' (bytes) is not a text; decode it"),
    "score of no number": (
        lambda a, lm: lmtools.tune([NBest("u", (Hypothesis("a", {"am": None}),), "a")]),
        "lists[0]: hypothesis 1 of utterance 'u': scores['am']: None is not a number",
    ),
    "NaN score": (
        lambda a, lm: lmtools.tune([NBest.of("u", ["a"], "a", am=[NAN])]),
        "feature 'am' of hypothesis 1 of utterance 'u' is no finite number",
    ),
    "another length": (
        lambda a, lm: lmtools.tune([a], {"x": [[1.0]]}),
        "column 'x': not one number for each hypothesis of each list: 1 for the 2 hypotheses of",
    ),
    "words of an oracle": (
        lambda a, lm: lmtools.lattice.oracle(Lattice.of("u", 1, 0, [], [Final(0)]), "a b"),
        "ref: 'a b' (str) is not a list of words; split it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_named(case, lm):
    call, message = REFUSED[case]
    with pytest.raises(UserError) as refusal:
        call(make_lists()[0], lm)
    assert message in str(refusal.value)


def test_a_frame_of_pandas_as_the_page_has_it(lm, tmp_path):
    """The recipe of docs/python.md, with an empty cell and the word `null`."""
    pandas = pytest.importorskip("pandas")
    page = (Path(__file__).parents[3] / "docs/python.md").read_text()
    recipe = page.partition("## pandas")[2].partition("```py\n")[2].partition("```")[0]
    path = tmp_path / "beams.csv"
    path.write_text("utt,text,am\n7,the fox,-1\n7,,-2\n8,null,-1.5\n8,the null,-2\n")
    lists = make_lists()
    given = {"lm": lm, "weights": lmtools.tune(lists, {"new": lm.score_lists(lists)})}
    given |= {"lmtools": lmtools, "pandas": pandas}
    exec(recipe.replace("beams.csv", str(path)), given)
    frame = given["frame"]
    assert frame["text"].tolist() == ["the fox", "", "null", "the null"]
    assert [*given["best"]] == ["7", "8"] and frame["chosen"].sum() == 2
    assert np.array_equal(frame["lm"], lm.score(["the fox", "", "null", "the null"]))
    frame = pandas.read_csv(path)
    with pytest.raises(UserError, match=r"texts\[1\]: nan \(float\) is not a text"):
        lm.score(frame["text"])
    with pytest.raises(UserError, match="is not a sequence of texts"):
        lm.score(frame)
    assert len(lm.score(frame["text"].fillna(""))) == 4
    with pytest.raises(UserError, match=r"utt: .*7.* is not a text"):
        NBest.of(frame["utt"][0], ["a"])
    numbers = {"new": pandas.DataFrame([[1.0, 2.0], [1.0, 0.5]])}
    with pytest.raises(UserError, match="column 'new'"):
        lmtools.tune(lists, numbers)
    assert lmtools.wer(frame["text"].fillna(""), frame["text"].fillna("")).score == 0


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ("give --scores NAME=FILE for each", "give columns={'NAME': FILE} for each"),
        ("leave --engine or --precision out", "leave engine or precision out"),
        (
            "run lmtools convert --ref F; or --max-line 3",
            "run lmtools convert --ref F; or max_line=3",
        ),
        ("--set negative=lm; --fix lm=-1", "negative=lm; fix={'lm': -1}"),
    ],
)
def test_messages_name_keywords(shell, python):
    with pytest.raises(UserError) as told, in_keywords():
        raise UserError(shell)
    assert str(told.value) == python


def test_lists_of_other_scores_are_refused_in_the_words_of_python():
    lists, more = (
        [NBest.of(f"u{i}", ["a b", "a c"], "a b", **scores) for i in range(3)]
        for scores in ({"am": [-1, -2]}, {"am": [-1, -2], "x": [1, 2]})
    )
    with pytest.raises(UserError, match=r"there fix=.'NAME': 0. ignores it"):
        lmtools.rescore(more, lmtools.tune(lists))


def test_an_evaluation_prints_two_digits():
    result = lmtools.wer(["a b c"], ["a b d"])
    assert f"{result}" == repr(result) == "WER 33.33%" and result.score == pytest.approx(100 / 3)
