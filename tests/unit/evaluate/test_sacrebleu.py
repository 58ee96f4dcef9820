"""Figures and significance equal to what the sacrebleu command prints for the same files."""

import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import replace

import jiwer
import numpy as np
import pytest
import sacrebleu.metrics

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.evaluate import METRICS, evaluate, pair_gains, paired_bootstrap, sentence_signature
from lmtools.evaluate.metrics import find_metric
from lmtools.evaluate.sacre import TOKENISERS
from lmtools.formats import kaldi_text
from lmtools.rescoring import Weights

NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
WORDS = [
    *("“The", "President’s", "house,", "(built", "in", "1,913.5", "km)", "was", "&", "is", "not"),
    *("Übersetzung;", "e.g.", "A-B", "it?", "."),
]


def texts():
    """References and two systems that get a part of them wrong; some hypotheses are empty, one
    reference is.
    """
    rng = np.random.default_rng(3)
    refs = [" ".join(rng.choice(WORDS, rng.integers(4, 25))) for _ in range(60)]
    systems = [
        [
            " ".join(
                word if rng.random() > rate else str(rng.choice(WORDS)) for word in ref.split()
            )
            for ref in refs
        ]
        for rate in (0.3, 0.33)
    ]
    systems[0][5] = systems[1][9] = refs[30] = ""
    return {"ref": refs, "first": systems[0], "second": systems[1]}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The directory of the texts, plain (NAME.txt) and with ids (NAME), empty hypotheses left out
    of the latter.
    """
    home = tmp_path_factory.mktemp("sacrebleu")
    for name, lines in texts().items():
        (home / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
        kaldi_text.write(
            {f"u{i:02}": line for i, line in enumerate(lines) if line or name == "ref"}, home / name
        )
    return home


def sacrebleu(home, *arguments):
    command = [sys.executable, "-m", "sacrebleu", "ref.txt", "-m", *NAMES, "-w", "10", *arguments]
    return subprocess.run(
        command, cwd=home, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout


@pytest.fixture(scope="module")
def single(files):
    return {
        row["name"]: row for row in json.loads(sacrebleu(files, "-i", "first.txt", "-f", "json"))
    }


@pytest.fixture(scope="module")
def paired(files):
    """By metric: score, mean and half width of the baseline `second`, the same of `first`, and p,
    as printed.
    """
    # as JSON sacrebleu 2.6.0 cannot write TER
    table = sacrebleu(files, "-i", "second.txt", "first.txt", "--paired-bs", "-f", "text")
    names = re.findall(r"(\w+) \(μ", table)
    figures = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", table)
    assert sorted(names) == sorted(NAMES.values()) and len(figures) == 6
    return dict(
        zip(
            names,
            zip(figures[:3], figures[3:], re.findall(r"p = ([\d.]+)", table), strict=True),
            strict=True,
        )
    )


def ours(home, metric, monkeypatch, *arguments):
    monkeypatch.chdir(home)
    assert main(["evaluate", "--metric", metric, "--out", f"{metric}.json", *arguments]) == 0
    return json.loads((home / f"{metric}.json").read_text())


@pytest.mark.parametrize(
    "arguments",
    [["--ref", "ref", "--hyp", "first"], ["--ref", "ref.txt", "--hyp", "first.txt", "--plain"]],
)
@pytest.mark.parametrize("metric", NAMES)
def test_scores_to_the_last_digit(files, single, monkeypatch, metric, arguments):
    tree, theirs = ours(files, metric, monkeypatch, *arguments), single[NAMES[metric]]
    assert round(tree["score"], 10) == theirs["score"] and 20 < theirs["score"] < 90
    assert (
        theirs["signature"].split("|")[1:]
        == [
            part for part in tree["signature"].split("|") if part in theirs["signature"].split("|")
        ][1:]
    )


@pytest.mark.parametrize("metric", NAMES)
def test_the_paired_bootstrap_is_sacrebleus(files, paired, monkeypatch, capsys, metric):
    tree = ours(files, metric, monkeypatch, "--ref", "ref", "--hyp", "first", "--against", "second")
    (against, _, _), system, p = paired[NAMES[metric]]
    found = tree["sacre"]
    assert "bootstrap" not in tree
    assert (*(f"{found[key]:.10f}" for key in ("score", "mean", "half_width")),) == system
    assert f"{found['against']:.10f}" == against
    assert f"{found['p']:.4f}" == p
    assert 0.001 < found["p"] < 0.9
    assert (found["resamples"], found["seed"]) == (1000, 12345)
    assert "|bs:1000|seed:12345|" in found["signature"]
    assert f"p = {found['p']:.2g} metric:{metric}|" in capsys.readouterr().out


def test_one_system_does_not_differ_from_itself():
    every = texts()
    refs, hyps = (dict(enumerate(every[name])) for name in ("ref", "first"))
    statistics = evaluate(refs, hyps, "bleu").statistics
    assert (
        METRICS["bleu"].paired_bootstrap(statistics, statistics).p
        == paired_bootstrap(statistics, statistics, "bleu", 1).p
        == 1
    )


REFS = [
    "我们今天去公园散步，天气很好。",
    "这本书 非常 有意思，我 give 你。",
    "ข้าพเจ้าไปตลาด",
    "a-b, 3.5!",
]
HYPS = [
    "我们今天去公园走路，天气很好。",
    "这本书很有意思，我 give 你。",
    "ข้าพเจ้าไปบ้าน",
    "a-b 3.5 !",
]
BLEU, TER = sacrebleu.metrics.BLEU, sacrebleu.metrics.TER
HERE = [name for name in TOKENISERS if not name.startswith(("ja", "ko", "flores", "spBLEU"))]
THEIRS = {
    **{f"bleu:tokenize={name}": (BLEU, {"tokenize": name}) for name in HERE},
    "ter:normalized=yes": (TER, {"normalized": True}),
    "ter:asian=yes,normalized=yes": (TER, {"normalized": True, "asian_support": True}),
}


def test_all_tokenisers_of_sacrebleu_are_known():
    assert {*TOKENISERS, "spm"} == {*BLEU.TOKENIZERS} and TOKENISERS[0] == BLEU.TOKENIZER_DEFAULT


@pytest.mark.parametrize("spec", THEIRS)
def test_scores_statistics_and_signature_are_sacrebleus(spec):
    kind, settings = THEIRS[spec]
    theirs, metric = kind(**settings), METRICS[spec]
    expected = theirs.corpus_score(HYPS, [REFS]).score
    total = sum(metric.statistics(ref, [hyp])[0] for ref, hyp in zip(REFS, HYPS, strict=True))
    assert float(metric.score(total)) == pytest.approx(expected, abs=1e-9)
    refs, hyps = (dict(enumerate(texts)) for texts in (REFS, HYPS))
    evaluation = evaluate(refs, hyps, spec)
    assert evaluation.score == pytest.approx(expected, abs=1e-9)
    assert f"|{theirs.get_signature()}|" in evaluation.signature
    alone = kind(**settings, **({"effective_order": True} if kind is BLEU else {}))
    sign = -1 if kind is TER else 1
    one_by_one = [[sign * alone.sentence_score(hyp, [ref]).score for ref in HYPS] for hyp in HYPS]
    assert np.allclose(pair_gains(spec, HYPS, range(len(HYPS))), one_by_one)
    assert f"|{alone.get_signature()}|" in sentence_signature(spec)


def test_cer_without_blanks_is_jiwers_of_texts_without_them():
    refs, hyps = (dict(enumerate(texts)) for texts in (REFS, HYPS))
    bare = [["".join(text.split()) for text in texts] for texts in (REFS, HYPS)]
    for spec, theirs in (("cer", jiwer.cer(REFS, HYPS)), ("cer:blanks=no", jiwer.cer(*bare))):
        assert evaluate(refs, hyps, spec).score == pytest.approx(100 * theirs)
    assert evaluate({"u": "the cat sat"}, {"u": "thecat sat"}, "cer").score == pytest.approx(
        100 / 11
    )
    assert evaluate({"u": "the cat sat"}, {"u": "thecat sat"}, "cer:blanks=no").score == 0
    assert "|blanks:yes|" in METRICS["cer"].signature
    assert "|blanks:no|" in METRICS["cer:blanks=no"].signature
    assert pair_gains("cer:blanks=no", ["a b", "ab", "b"], [1]).tolist() == [[0], [0], [-1]]


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("bleu:", "bleu"),
        ("bleu:tokenize=13a", "bleu"),
        ("ter:asian=yes,normalized=yes", "ter:normalized=yes,asian=yes"),
        ("ter:asian=no,normalized=yes", "ter:normalized=yes"),
        ("cer:blanks=yes", "cer"),
    ],
)
def test_a_metric_has_one_name(spec, name):
    assert find_metric(spec)[0] == name


@pytest.mark.parametrize(
    "spec",
    [
        *("per", "", "bleu:tok=zh", "bleu:tokenize=jp", "bleu:tokenize", "wer:blanks=no", "BLEU"),
        *("cer:blanks=no,blanks=yes", "ter:asian=yes", "bleu:tokenize=spm", "x" * 999),
    ],
)
def test_what_is_no_metric_is_refused_in_a_line(spec, capsys):
    with pytest.raises(UserError) as refusal:
        find_metric(spec)
    assert len(str(refusal.value)) <= 500
    for verb, option in (("evaluate", "--metric"), ("tune", "--metric"), ("mbr", "--utility")):
        with pytest.raises(SystemExit) as end:
            main([verb, "--nbest", "x", option, spec])
        assert end.value.code == 2 and f"argument {option}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "package"), [("ja-mecab", "MeCab"), ("ko-mecab", "mecab_ko"), ("flores200", None)]
)
def test_a_tokeniser_that_lacks_a_package_or_a_model_says_so(name, package, tmp_path, monkeypatch):
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", str(tmp_path))
    if package and importlib.util.find_spec(package):
        pytest.skip("it is installed")
    with pytest.raises(
        UserError, match=r"pip install|fetch it where there is a network"
    ) as refusal:
        evaluate({"u": "a"}, {"u": "a"}, f"bleu:tokenize={name}")
    assert name in str(refusal.value) and "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_tuning_and_minimum_risk_take_the_same_tokens(tmp_path):
    lists, weights, column = (str(tmp_path / name) for name in ("n.jsonl", "w.json", "f.mbr"))
    rows = [
        {
            "utt": str(i),
            "ref": ref,
            "hyps": [{"text": text, "scores": {"am": -j}} for j, text in enumerate((hyp, ref))],
        }
        for i, (ref, hyp) in enumerate(zip(REFS, HYPS, strict=True))
    ]
    (tmp_path / "n.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = "bleu:tokenize=zh"
    assert not main(["mbr", "--nbest", lists, "--utility", spec, "--out", column])
    assert "tok:zh" in (tmp_path / "f.mbr").read_text().splitlines()[0]
    command = ["tune", "--nbest", lists, "--scores", f"mbr={column}", "--metric", spec]
    assert not main([*command, "--out", weights])
    tuned = Weights.load(weights)
    assert tuned.metric == spec
    assert tuned.dev.first_pass == pytest.approx(
        BLEU(tokenize="zh").corpus_score(HYPS, [REFS]).score
    )
    out = str(tmp_path / "best.txt")
    given = ["--scores", f"mbr={column}", "--weights", weights, "--out", out]
    assert not main(["rescore", "--nbest", lists, *given])
    assert (tmp_path / "best.txt").exists()
    if not importlib.util.find_spec("MeCab"):
        replace(tuned, metric="bleu:tokenize=ja-mecab").save(weights)
        out = tmp_path / "none.txt"
        given[-1] = str(out)
        assert main(["rescore", "--nbest", lists, *given]) == 1 and not out.exists()
