"""`--weights default:whisper`: by the command, lazily, and in Python."""

import pytest

import lmtools
from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text
from lmtools.rescoring.defaults import DEFAULTS, LM
from lmtools.types import Hypothesis, NBest

WEIGHTS = DEFAULTS["whisper"]
HYPS = [("a b c", -1.0, -30.0), ("a b", -1.5, -20.0), ("a b c d", -3.0, -25.0), ("e", -2.0, -9.0)]
AVG = -0.1  # a score that default weights leave out


def write_lists(names=("am", "avg")) -> list[NBest]:
    """Write test.jsonl and a column of plain numbers."""
    scores = [dict(zip(("am", "avg"), (am, AVG), strict=True)) for _, am, _ in HYPS]
    hyps = [
        Hypothesis(text, {name: own[name] for name in names})
        for (text, _, _), own in zip(HYPS, scores, strict=True)
    ]
    lists = [NBest("u", tuple(hyps), "a b c d")]
    jsonl.write(lists, "test.jsonl")
    with open("lm.txt", "w") as out:
        out.writelines(f"{lm}\n" for _, _, lm in HYPS)
    return lists


def best() -> str:
    """The hypothesis of the greatest total, computed by hand."""
    return max(
        HYPS,
        key=lambda hyp: (
            WEIGHTS["am"] * hyp[1] + WEIGHTS[LM] * hyp[2] + WEIGHTS["words"] * len(hyp[0].split())
        ),
    )[0]


def run(*more: str) -> int:
    """The exit status of `lmtools rescore`."""
    return main(["rescore", "--nbest", "test.jsonl", "--out", "out.txt", *more])


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_command_chooses_by_them_and_says_so(capsys):
    write_lists()
    assert run("--weights", "default:whisper", "--scores", "new=lm.txt") == 0
    assert kaldi_text.read("out.txt") == {"u": best()}
    assert "default:whisper: am 1, new 0.15, words 1.3; with references" in capsys.readouterr().err


def test_a_column_of_an_ear_has_weights_of_its_own(capsys):
    write_lists()
    with open("ear.txt", "w") as out:
        out.writelines("0\n" if text == "e" else "-9\n" for text, *_ in HYPS)
    columns = ("--scores", "new=lm.txt", "ear=ear.txt")
    assert run("--weights", "default:whisper", *columns) == 0
    assert kaldi_text.read("out.txt") == {"u": "e"} != {"u": best()}
    assert "am 1, new 0.2, ear 0.8, words 1; with references" in capsys.readouterr().err


def test_python_and_a_model_that_scores_choose_alike(tmp_path, capsys):
    lists = write_lists()
    (tmp_path / "text").write_text("a b c d\ne a b\n" * 9)
    assert main(["ngram", "--text", "text", "--order", "2", "--out", "lm"]) == 0
    lm = lmtools.load("lm")
    column = {"any": lm.score_lists(lists)}
    chosen = lmtools.rescore(lists, "default:whisper", column)[0].hyps[0].text
    assert lm.rescore(lists[0], "default:whisper").hyps[0].text == chosen
    assert run("--weights", "default:whisper", "--lm", "new=lm") == 0
    assert kaldi_text.read("out.txt") == {"u": chosen}


@pytest.mark.parametrize(
    ("scores", "more", "message"),
    [
        (("am",), ("default:vosk", "--scores", "new=lm.txt"), "no such default; give default:wh"),
        (("am",), ("default:whisper",), "one language model, but there are 0 columns"),
        (("am",), ("default:whisper", "--scores", "a=lm.txt", "b=lm.txt"), "there are 2 columns"),
        (("am",), ("default:whisper", "--scores", "new/word=lm.txt"), "give new in place of its"),
        (("avg",), ("default:whisper", "--scores", "new=lm.txt"), "the lists have no score 'am'"),
    ],
)
def test_what_does_not_fit_is_refused(scores, more, message, capsys):
    write_lists(scores)
    assert run("--weights", *more) == 1
    error = capsys.readouterr().err
    assert error.startswith("lmtools rescore: --weights default:") and message in error
    assert error.count("\n") == 1


def test_silence_stays_silence():
    """The recogniser heard nothing: no noise wins by its words, however well the LM likes them."""
    lists = [
        NBest("u", (Hypothesis("", {"am": -1.0}), Hypothesis("music", {"am": -1.2}))),
        NBest("v", (Hypothesis("a", {"am": -1.0}), Hypothesis("a b", {"am": -1.2}))),
    ]
    jsonl.write(lists, "test.jsonl")
    with open("lm.txt", "w") as out:
        out.write("-9\n-1\n-9\n-8\n")
    assert run("--weights", "default:whisper", "--scores", "new=lm.txt") == 0
    assert kaldi_text.read("out.txt") == {"u": "", "v": "a b"}


@pytest.mark.parametrize(
    ("factor", "name", "message"),
    [
        (-1.0, "avg", "all values of 'am' are positive: costs?"),
        (0.1, "avg", "looks like a mean of tokens, not their sum"),
        (100.0, "avg", "nats a word, Whisper under 3"),
        (1.0, "graph", "Whisper has no score graph"),
        (1.0, "avg", None),
    ],
)
def test_scores_that_are_not_whispers_are_told(factor, name, message, capsys):
    """By the command and in Python, by one function."""
    lists = [
        NBest(f"u{i}", tuple(Hypothesis(t, {"am": factor * am, name: -0.1}) for t, am, _ in HYPS))
        for i in range(3)
    ]
    jsonl.write(lists, "test.jsonl")
    with open("lm.txt", "w") as out:
        out.writelines(f"{lm}\n" for _, _, lm in HYPS * 3)
    assert run("--weights", "default:whisper", "--scores", "new=lm.txt") == 0
    said = [
        line for line in capsys.readouterr().err.splitlines() if "for scores of Whisper" in line
    ]
    assert len(said) == bool(message) and all(message in line for line in said)
    if message:
        with pytest.warns(UserWarning, match="is for scores of Whisper"):
            lmtools.rescore(lists, "default:whisper", {"new": "lm.txt"})
