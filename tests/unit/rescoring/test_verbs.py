"""`lmtools tune` and `lmtools rescore`, as a recipe calls them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from shlex import split

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text, read, scores
from lmtools.types import Hypothesis, NBest, ScoreTable

SIGNATURE = {"lm": "tta", "model": "0a", "vocabulary": "0b", "precision": "float32", "version": "1"}


def make(name, seed, components=True):
    """`name`.jsonl and `name`.scores, in which the LM knows better than the first pass."""
    rng = np.random.default_rng(seed)
    nbests, table = [], {}
    for number in range(30):
        errors = rng.integers(0, 4, size=6)
        am = np.sort(rng.normal(size=6))[::-1]
        texts = [" ".join(["ok"] * (4 - n) + ["no"] * n) for n in errors]
        hyps = [
            Hypothesis(text, {"am": float(a)} if components else {})
            for text, a in zip(texts, am, strict=True)
        ]
        nbests.append(NBest(f"u{number}", tuple(hyps), "ok ok ok ok"))
        table[f"u{number}"] = rng.normal(size=6) - 2 * errors
    jsonl.write(nbests, f"{name}.jsonl")
    tokens = {utt: np.full(6, 5) for utt in table}
    scores.write(ScoreTable(table, tokens, SIGNATURE), nbests, f"{name}.scores")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make("dev", 1)
    make("test", 2)
    return tmp_path


def run(capsys, *arguments):
    """The status and the output of a command, whose words may stand in one text."""
    words = [word for text in arguments for word in (split(text) or [""])]
    return main(words), capsys.readouterr()


def succeed(capsys, *arguments):
    """What a command that succeeds writes to standard error."""
    status, printed = run(capsys, *arguments)
    assert status == 0, printed.err
    return printed.err


def written():
    return json.loads(Path("w.json").read_text())


def tuned(*more):
    return ("tune --nbest dev.jsonl --scores lm=dev.scores --metric wer --out w.json", *more)


def rescored(*more, scores="lm=test.scores"):
    return (f"rescore --nbest test.jsonl --scores {scores} --weights w.json --out out.txt", *more)


def test_tune_and_rescore(here, capsys):
    status, printed = run(capsys, *tuned())
    tree = written()
    assert status == 0
    assert list(tree["features"]) == ["am", "lm", "words"]
    assert tree["features"]["lm"] > 0
    told = f"WER {tree['dev']['first_pass']:.2f} -> {tree['dev']['wer']:.2f} on 30 utterances of"
    assert f"{told} dev.jsonl" in printed.err
    status, printed = run(capsys, *rescored("--nbest-out new.jsonl"))
    assert status == 0
    assert "weights tuned on dev.jsonl (30 utterances" in printed.err
    assert "warning" not in printed.err
    lists = list(jsonl.read("new.jsonl"))
    assert kaldi_text.read("out.txt") == {nbest.utt: nbest.hyps[0].text for nbest in lists}
    for nbest in lists:
        totals = [hyp.scores["total"] for hyp in nbest.hyps]
        assert totals == sorted(totals, reverse=True)
        for hyp in nbest.hyps:
            total = sum(weight * hyp.scores[name] for name, weight in tree["features"].items())
            assert hyp.scores["total"] == pytest.approx(total)


def test_a_column_of_plain_numbers_is_that_of_the_score_file(here, capsys):
    succeed(capsys, *tuned())
    succeed(capsys, *rescored())
    due = written()["features"], kaldi_text.read("out.txt")
    for name in ("dev", "test"):
        table = scores.read(f"{name}.scores").log_prob
        (here / name).mkdir()
        with open(f"{name}.numbers", "w") as flat, open(f"{name}.ranked", "w") as ranked:
            for utt, values in table.items():
                lines = [f"{float(value)!r}\n" for value in values]
                flat.writelines(lines)
                ranked.writelines(f"{utt} {rank} {line}" for rank, line in enumerate(lines, 1))
                (here / name / utt).write_text("".join(lines))
    for end in (".numbers", ".ranked", ""):
        command = "tune --nbest dev.jsonl --scores {} --out w.json"
        status, printed = run(capsys, (command.format(f"lm=dev{end}")))
        assert status == 0 and "no hash of the lists" in printed.err
        succeed(capsys, *rescored(scores=f"lm=test{end}"))
        found = written()["features"], kaldi_text.read("out.txt")
        assert found == due
    status, printed = run(capsys, command.format("lm/token=dev.numbers"))
    assert status == 1 and "--scores lm/token: dev.numbers has plain numbers" in printed.err
    succeed(capsys, command.format("lm/word=dev.numbers"))


def test_a_mean_over_equal_counts_is_the_sum_in_other_units(here, capsys):
    """The score files have 5 tokens for each hypothesis, and the hypotheses 4 words."""
    found = {}
    for name in ("lm", "lm/token", "lm/word"):
        tune = f"tune --nbest dev.jsonl --scores {name}=dev.scores --out w.json"
        run(capsys, f"{tune} --set lengths=")
        succeed(capsys, *rescored(scores=f"{name}=test.scores"))
        tree = written()
        assert list(tree["features"]) == ["am", name] and list(tree["search"]["curves"]) == [name]
        found[name] = tree["features"][name], kaldi_text.read("out.txt")
    assert found["lm/token"] == (pytest.approx(5 * found["lm"][0]), found["lm"][1])
    assert found["lm/word"] == (pytest.approx(4 * found["lm"][0]), found["lm"][1])
    tune = "tune --nbest dev.jsonl --scores lm/token=dev.scores --out w.json"
    succeed(capsys, f"{tune} --set form=interpolation")
    features = written()["features"]
    assert list(features) == ["am", "lm/token"]
    assert sum(features.values()) == pytest.approx(1)


def test_lengths_are_made_where_the_weights_name_them(here, capsys):
    more = "--scores", "lm/token=dev.scores", "--set", "lengths=characters,log-words"
    succeed(capsys, *tuned(*more))
    succeed(capsys, *rescored("--scores lm/token=test.scores --nbest-out new.jsonl"))
    weights = written()["features"]
    assert list(weights) == ["am", "lm", "lm/token", "characters", "log-words"]
    for hyp in (hyp for nbest in jsonl.read("new.jsonl") for hyp in nbest.hyps):
        assert hyp.scores["characters"] == len(hyp.text)
        assert hyp.scores["log-words"] == pytest.approx(np.log(5))
        assert hyp.scores["lm/token"] == pytest.approx(hyp.scores["lm"] / 5)
        total = sum(weight * hyp.scores[name] for name, weight in weights.items())
        assert hyp.scores["total"] == pytest.approx(total)
    status, printed = run(capsys, *rescored())
    tuned_with = "the weights were tuned on dev.jsonl with am, lm, lm/token"
    assert status == 1 and f"test.jsonl: no feature lm/token: {tuned_with}" in printed.err


@pytest.mark.parametrize(
    "options", [("--set", "lengths=syllables"), ("--set", "lengths=words,--set lengths=")]
)
def test_lengths_that_are_wrong_usage(here, capsys, options):
    status, printed = run(capsys, *tuned(*options))
    assert status == 1 and "lengths" in printed.err


@pytest.mark.parametrize("spec", ["moses", "marian", "espnet2"])
def test_the_lists_go_back_in_their_own_format(here, capsys, spec):
    """A format with room for one score gets the total, and the best first."""
    run(capsys, *tuned())
    succeed(capsys, *rescored("--nbest-out new.jsonl"))
    succeed(capsys, *rescored("--nbest-out", "new", "--nbest-to", spec))
    for wanted, found in zip(jsonl.read("new.jsonl"), read("new", spec), strict=True):
        assert [hyp.text for hyp in found.hyps] == [hyp.text for hyp in wanted.hyps]
        for own, hyp in zip(found.hyps, wanted.hyps, strict=True):
            due = pytest.approx(hyp.scores["total"], abs=1e-3)
            assert any(value == due for value in own.scores.values())


@pytest.mark.parametrize("out", ["out.txt", "-"])
def test_what_the_recogniser_wrote_is_written_too(here, capsys, out):
    """Beside the text; the metric is the same of both, and nothing of the choice is another."""
    succeed(capsys, *tuned())
    succeed(capsys, *rescored())
    plain = (here / "out.txt").read_text()
    assert not (here / "out.txt.written").exists()
    lists = []
    for nbest in jsonl.read("test.jsonl"):
        hyps = [replace(hyp, written=f"{hyp.text.title()}.") for hyp in nbest.hyps[:-1]]
        lists.append(replace(nbest, hyps=(*hyps, nbest.hyps[-1])))
    jsonl.write(lists, "test.jsonl")
    status, said = run(capsys, *rescored("--out", out, "--nbest-out n.jsonl"))
    assert status == 0
    if out == "-":
        assert said.out == plain and "own writing is in --nbest-out" in said.err
        assert not list(here.glob("*.written"))
        return
    assert (here / out).read_text() == plain
    assert "out.txt.written: the same as the recogniser wrote it\n" in said.err
    display = {nbest.utt: nbest.hyps[0].display for nbest in jsonl.read("n.jsonl")}
    assert kaldi_text.read("out.txt.written") == display
    assert any("Ok" in text for text in display.values())
    assert all(utt + " " + text.lower().rstrip(".") in plain for utt, text in display.items())
    same = []
    for hyp in (out, f"{out}.written"):
        options = f"evaluate --ref test.jsonl --hyp {hyp} --normaliser librispeech"
        same.append(run(capsys, options)[1].out)
    assert same[0] == same[1]


def test_rescoring_the_tuning_set_warns(here, capsys):
    run(capsys, *tuned())
    status, printed = run(
        capsys, ("rescore --nbest dev.jsonl --scores lm=dev.scores --weights w.json --out -")
    )
    assert status == 0
    assert "warning: dev.jsonl is the set that the weights were tuned on" in printed.err
    assert len(printed.out.splitlines()) == 30


def test_empty_lists_are_said(here, capsys):
    jsonl.write([*jsonl.read("dev.jsonl"), NBest("empty", (), "ok")], "dev.jsonl")
    jsonl.write([*jsonl.read("test.jsonl"), NBest("empty", ())], "test.jsonl")
    _, printed = run(capsys, *tuned())
    assert "warning: 1 of 31 lists are empty (first 'empty')" in printed.err
    _, printed = run(capsys, *rescored())
    assert "warning: 1 of 31 lists are empty (first 'empty')" in printed.err
    assert kaldi_text.read("out.txt")["empty"] == ""


def test_rank_and_options(here, capsys):
    make("dev", 1, components=False)
    status, printed = run(capsys, *tuned("--fix lm=0.5 --set lengths= objective=exact --seed 3"))
    tree = written()
    assert status == 0
    assert tree["features"] == {"rank": 1.0, "lm": 0.5}
    assert tree["search"]["seed"] == 3
    status, printed = run(capsys, *tuned("--set form=interpolation"))
    tree = written()
    assert status == 0 and tree["features"]["rank"] + tree["features"]["lm"] == pytest.approx(1)
    assert f"lambda {tree['features']['lm']:.4g}" in printed.err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            rescored(scores="tta=test.scores"),
            "test.jsonl: no feature lm: the weights were tuned on dev.jsonl with am, lm, words",
        ),
        (rescored("--scores", "more=test.scores"), "test.jsonl: no weight for more"),
        (rescored(scores="lm=dev.jsonl"), "dev.jsonl:1: 56 fields; a column is"),
        (rescored(scores="lm=gone"), "gone: cannot read"),
        (rescored("--weights", "dev.jsonl"), "dev.jsonl: not JSON"),
        (rescored("--nbest-out new --nbest-to nix"), "nix: no format is called 'nix'; known are"),
        (rescored("--nbest-out new --nbest-to trn"), "new: holds one hypothesis an utterance"),
        (rescored("--nbest-out new --nbest-to moses:x=1"), "moses:x=1: format 'moses' takes no"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(here, capsys, arguments, message):
    run(capsys, *tuned())
    status, printed = run(capsys, *arguments)
    assert status == 1
    assert printed.err.startswith(f"lmtools rescore: {message}")
    assert printed.err.count("\n") == 1
    assert not (here / "out.txt").exists()


def test_a_malformed_weight_is_wrong_usage(here, capsys):
    with pytest.raises(SystemExit) as stop:
        run(capsys, *tuned("--fix lm"))
    assert stop.value.code == 2 and "write NAME=NUMBER" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["tune", "rescore"])
@pytest.mark.parametrize(
    "change",
    [
        lambda hyps: hyps[::-1],
        lambda hyps: tuple(replace(hyp, text="quite another") for hyp in hyps),
    ],
)
def test_scores_of_other_lists_are_refused(here, capsys, verb, change):
    """Both files are named."""
    run(capsys, *tuned())
    (here / "w.json").rename("w")
    name = "dev" if verb == "tune" else "test"
    jsonl.write(
        [replace(nbest, hyps=change(nbest.hyps)) for nbest in jsonl.read(f"{name}.jsonl")],
        "new.jsonl",
    )
    more = ("--out w.json" if verb == "tune" else "--weights w --out out.txt").split()
    status, printed = run(
        capsys, verb, "--nbest", "new.jsonl", "--scores", f"lm={name}.scores", *more
    )
    assert status == 1 and printed.err.count("\n") == 1
    other = f"lmtools {verb}: {name}.scores: scores of other lists than new.jsonl:"
    assert printed.err.startswith(other)
    assert not (here / more[-1]).exists()


def rewritten(name, **changes):
    """`name`.scores with another signature."""
    table, nbests = scores.read(f"{name}.scores"), list(jsonl.read(f"{name}.jsonl"))
    signature = {
        key: value for key, value in {**table.signature, **changes}.items() if value is not None
    }
    scores.write(replace(table, signature=signature), nbests, f"{name}.scores")


@pytest.mark.parametrize("name", ["lm", "lm/token"])
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "1a"}, "model '1a' for '0a'"),
        ({"oov": "9.0"}, "oov '9.0' for nothing"),
        ({"vocabulary": None}, "vocabulary nothing for '0b'"),
        (
            {"normalise": "none", "precision": "bfloat16"},
            "normalise 'none' for nothing, precision 'bfloat16' for 'float32'",
        ),
    ],
)
def test_scores_of_another_model_are_refused(here, capsys, name, changes, told):
    rewritten("test", **changes)
    run(capsys, "tune", "--nbest", "dev.jsonl", "--scores", f"{name}=dev.scores", "--out w.json")
    status, printed = run(capsys, *rescored(scores=f"{name}=test.scores"))
    assert status == 1 and printed.err.count("\n") == 1 and not (here / "out.txt").exists()
    assert printed.err.startswith(
        f"lmtools rescore: test.scores: not of what w.json was tuned on as '{name}': {told}; give"
        " the scores of"
    )


def test_scores_that_differ_in_rounding_warn(here, capsys):
    rewritten("dev", utility="metric:bleu|version:2.4.0|missing:empty|by:lmtools-1")
    utility = "metric:bleu|version:2.5.0|missing:empty|by:lmtools-2"
    rewritten("test", levels="63", precision="int8", version="2", utility=utility)
    run(capsys, *tuned())
    status, printed = run(capsys, *rescored())
    (line,) = [line for line in printed.err.splitlines() if "warning" in line]
    told = "test.scores: made otherwise than what w.json was tuned on as 'lm': levels '63' for"
    assert status == 0 and f"{told} nothing, precision 'int8' for 'float32'" in line


def test_what_cannot_be_checked_warns(here, capsys):
    """Old weights say nothing of columns, old score files nothing of lists."""
    run(capsys, *tuned())
    tree = written()
    assert tree["signatures"] == {"lm": SIGNATURE}
    del tree["signatures"]
    (here / "w.json").write_text(json.dumps(tree))
    for name in ("dev", "test"):
        lines = (here / f"{name}.scores").read_text().splitlines()
        (here / f"{name}.scores").write_text("\n".join(lines[:-1]))
    about = ": no hash of the lists that were scored"
    status, printed = run(capsys, *rescored())
    warnings = [line for line in printed.err.splitlines() if line.startswith("warning")]
    assert status == 0
    assert len(warnings) == 2
    assert warnings[0].startswith(f"warning: test.scores{about}")
    assert warnings[1].startswith("warning: w.json: does not say which scores lm was tuned on")
    status, printed = run(capsys, *tuned("--scores mean/token=dev.scores"))
    assert status == 0 and printed.err.count(f"warning: dev.scores{about}") == 1


def test_plain_numbers_are_told_in_one_line_of_one_verb(here, capsys):
    for name in ("dev", "test"):
        count = sum(len(nbest.hyps) for nbest in jsonl.read(f"{name}.jsonl"))
        for column in ("a", "b"):
            (here / f"{name}.{column}").write_text(f"-1.{len(column)}\n" * count)
    columns = [["--scores", f"a={name}.a", f"b={name}.b"] for name in ("dev", "test")]
    tune = "tune", "--nbest", "dev.jsonl", *columns[0], "--out", "w.json"
    assert "warning: dev.a, dev.b: no hash" in run(capsys, *tune)[1].err
    rescore = "rescore", "--nbest", "test.jsonl", "--weights", "w.json", "--out", "o", *columns[1]
    status, printed = run(capsys, *rescore)
    assert status == 0 and "no hash" not in printed.err


def test_worse_than_the_lists_own_order_is_said_and_mended(here, capsys):
    """The lists stand in the best order, and the scores know nothing of it."""
    lists = [
        replace(nbest, hyps=tuple(sorted(nbest.hyps, key=lambda hyp: -hyp.text.count("ok"))))
        for nbest in jsonl.read("dev.jsonl")
    ]
    jsonl.write(lists, "dev.jsonl")
    tune = "tune", "--nbest", "dev.jsonl", "--set", "lengths=", "--out", "w.json"
    status, printed = run(capsys, *tune)
    first, found = map(float, re.search(r"WER (\S+) -> (\S+) on", printed.err).groups())
    assert status == 0
    assert found > first
    assert "warning: no weights of these scores reach the recogniser's own ranking" in printed.err
    status, printed = run(capsys, *tune, "--set reference=rank")
    assert status == 0
    assert f"WER {first:.2f} -> {first:.2f} on" in printed.err
    assert "warning" not in printed.err
    assert written()["reference"] == "rank"
    succeed(capsys, "rescore --nbest dev.jsonl --weights w.json --out out.txt")
    assert kaldi_text.read("out.txt") == {nbest.utt: nbest.hyps[0].text for nbest in lists}


@pytest.mark.parametrize("value", [-1e30, 1e308])
def test_values_that_are_no_scores_are_told(here, capsys, value):
    """With file, utterance and rank, by both verbs; what is chosen stays finite."""
    for name in ("dev", "test"):
        lists = list(jsonl.read(f"{name}.jsonl"))
        bad = replace(lists[4].hyps[2], scores={"am": value})
        lists[4] = replace(lists[4], hyps=(*lists[4].hyps[:2], bad, *lists[4].hyps[3:]))
        jsonl.write(lists, f"{name}.jsonl")
    for name, arguments in (("dev", tuned()), ("test", rescored("--nbest-out new.jsonl"))):
        status, printed = run(capsys, *arguments)
        about = (
            f"warning: {name}.jsonl: feature 'am' of hypothesis 3 of utterance 'u4' is {value:g}:"
            " no score; each counts as"
        )
        assert status == 0 and sum(line.startswith(about) for line in printed.err.splitlines()) == 1
    assert all(
        abs(hyp.scores["total"]) < 1e6 for nbest in jsonl.read("new.jsonl") for hyp in nbest.hyps
    )


def subtractable(name, seed):
    """NAME.jsonl, whose `am` has NAME.source's opinion; NAME.target knows better."""
    rng = np.random.default_rng(seed)
    nbests, columns = [], {"source": [], "target": []}
    for number in range(80):
        errors = rng.integers(0, 4, size=6)
        source, target = 3 * rng.normal(size=6), rng.normal(size=6) - 0.5 * errors
        am = source + rng.normal(size=6) - errors
        order = np.argsort(-am)
        texts = [" ".join(["ok"] * (4 - errors[n]) + ["no"] * errors[n]) for n in order]
        hyps = [
            Hypothesis(text, {"am": float(am[n])}) for text, n in zip(texts, order, strict=True)
        ]
        nbests.append(NBest(f"u{number}", tuple(hyps), "ok ok ok ok"))
        columns["source"] += source[order].tolist()
        columns["target"] += target[order].tolist()
    jsonl.write(nbests, f"{name}.jsonl")
    for column, values in columns.items():
        with open(f"{name}.{column}", "w") as out:
            out.writelines(f"{value!r}\n" for value in values)


SUBTRACT = "tune --nbest dev.jsonl --scores target=dev.target source=dev.source"


def test_a_source_lm_is_subtracted(here, capsys):
    """Density ratio: what the recogniser learnt of its own text is in its score."""
    subtractable("dev", 3)
    subtractable("test", 4)
    found = {}
    for more in ([], ["--set", "negative=source"]):
        for objective in ("expected", "exact"):
            command = f"{SUBTRACT} --set lengths= objective={objective} --out w.json"
            succeed(capsys, command, *more)
            command = "rescore --nbest test.jsonl --scores target=test.target source=test.source"
            succeed(capsys, command, "--weights w.json --out out.txt")
            tree = written()
            texts = kaldi_text.read("out.txt").values()
            wer = sum(text.split().count("no") for text in texts) / (4 * len(texts))
            found[bool(more), objective] = tree["features"], wer
    for objective in ("expected", "exact"):
        bounded, free = found[False, objective], found[True, objective]
        assert 0 <= bounded[0]["source"] < 0.05 and bounded[0]["target"] > 0
        assert -1.2 < free[0]["source"] < -0.8 and free[0]["target"] > 0
        assert free[1] < 0.7 * bounded[1]


@pytest.mark.parametrize(
    "more, message",
    {
        "--set negative=nix": "negative=nix: dev.jsonl has no such feature; it has am, target,",
        "--set negative=am": "negative=am: its weight is given, not tuned",
        "--set negative=source --fix source=-1": "negative=source: its weight is given",
        "--set negative=source form=interpolation --fix target=0": "negative=source: lambda is",
    }.items(),
)
def test_what_may_not_be_negative(here, capsys, more, message):
    subtractable("dev", 3)
    status, printed = run(capsys, f"{SUBTRACT} --out w.json {more}")
    assert status == 1 and printed.err.startswith(f"lmtools tune: {message}")
    assert printed.err.count("\n") == 1 and not (here / "w.json").exists()
