"""Metrics with options: sacrebleu's tokenisers, and CER without blanks."""

import importlib.util
import json
from dataclasses import replace

import jiwer
import numpy as np
import pytest
import sacrebleu.metrics

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.evaluate.corpus import evaluate
from lmtools.evaluate.metrics import METRICS, find_metric
from lmtools.evaluate.pairs import pair_gains, sentence_signature
from lmtools.evaluate.sacre import TOKENISERS
from lmtools.rescoring.weights import Weights

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
        *(
            "wer:rules=hub5",
            "cer:blanks=no,blanks=yes",
            "ter:asian=yes",
            "bleu:tokenize=spm",
            "x" * 999,
        ),
    ],
)
def test_what_is_no_metric_is_refused_in_a_line(spec, capsys):
    with pytest.raises(UserError) as refusal:
        find_metric(spec)
    assert len(str(refusal.value)) <= 500
    for verb, option in (("evaluate", "--metric"), ("tune", "--metric"), ("mbr", "--utility")):
        with pytest.raises(SystemExit) as end:
            main([verb, "--hyp" if verb == "evaluate" else "--nbest", "x", option, spec])
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
