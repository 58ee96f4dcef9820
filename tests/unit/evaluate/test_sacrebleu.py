"""Figures and significance equal to what the sacrebleu command prints for the same files."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from sacrebleu import metrics as their_metrics

from lmtools.cli import main
from lmtools.evaluate.corpus import evaluate
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.pairs import pair_gains
from lmtools.evaluate.significance import paired_bootstrap
from lmtools.formats import kaldi_text

NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
WORDS = [
    *("“The", "President’s", "house,", "(built", "in", "1,913.5", "km)", "was", "&", "is", "not"),
    *("Übersetzung;", "e.g.", "A-B", "it?", "."),
]


def texts():
    """References and two systems partly wrong; some hypotheses, one reference empty."""
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
    """The texts, plain (NAME.txt) and with ids (NAME), without empty hypotheses."""
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
def paired(files):
    """By metric: score, mean, half width of `second`, of `first`, and p, as printed."""
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


OPTIONS = {
    "bleu": {}, "chrf": {}, "ter": {}, "chrf:word_order=2": {"word_order": 2},
    "chrf:word_order=1": {"word_order": 1}, "chrf:lowercase=yes": {"lowercase": True},
    "chrf:word_order=2,lowercase=yes": {"word_order": 2, "lowercase": True},
    "bleu:lowercase=yes": {"lowercase": True},
    "bleu:effective_order=yes": {"effective_order": True},
    "bleu:tokenize=intl,lowercase=yes,effective_order=yes":
        {"tokenize": "intl", "lowercase": True, "effective_order": True},
}  # fmt: skip


@pytest.mark.parametrize("several", [1, 2, "var"])
@pytest.mark.parametrize("size", [60, 4])
@pytest.mark.parametrize("metric", OPTIONS)
def test_options_and_several_references(metric, size, several):
    theirs = getattr(their_metrics, metric.partition(":")[0].upper())(**OPTIONS[metric])
    every = texts()
    hyps = [text.swapcase() if i % 3 else text for i, text in enumerate(every["first"])][-size:]
    hyps[1:] = hyps[1:] if size == 60 else ["is it not", "THE house", ""]  # of few n-grams
    refs, more = every["ref"][-size:], every["second"][-size:]
    more = [text if i % 4 or several == 2 else None for i, text in enumerate(more)]
    expected = theirs.corpus_score(hyps, [refs] if several == 1 else [refs, more])
    pairs = enumerate(zip(refs, more, strict=True))
    ours = {
        i: r if several == 1 else tuple(x for x in (r, m) if x is not None) for i, (r, m) in pairs
    }
    found = evaluate(ours, dict(enumerate(hyps)), metric)
    assert found.score == pytest.approx(expected.score, abs=1e-9) and (found.score or size == 4)
    signature = f"|{theirs.get_signature()}|missing:empty"
    assert signature in found.signature and f"|nrefs:{several}|" in found.signature
    gains = pair_gains(metric, refs[:5], range(3))
    one = METRICS[metric]
    expected = [[one.gain(one.statistics(ref, [text]))[0] for ref in refs[:3]] for text in refs[:5]]
    np.testing.assert_allclose(gains, expected, atol=1e-9)


def test_a_list_of_one_reference_is_read(tmp_path, capsys):
    line = '{{"utt": "{}", "ref": {}, "hyps": [{{"text": "a b c d"}}]}}\n'
    (tmp_path / "n.jsonl").write_text(
        line.format("u", '["a b c d"]') + line.format("v", '"a b c d"')
    )
    for metric in ("wer", "bleu"):
        assert main(["evaluate", "--hyp", f"{tmp_path}/n.jsonl", "--metric", metric]) == 0
        assert f"{'WER 0.00%' if metric == 'wer' else 'BLEU 100.00'}" in capsys.readouterr().out
