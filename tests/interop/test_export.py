"""What `lmtools export` writes, loaded by who it is for: our scores to 1e-4."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import sentencepiece
import torch
from scoring import load_scorer
from toys import TRANSFORMER, sentences, settings

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.models.checkpoint import prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.text.normaliser import NORMALISERS, Normaliser
from lmtools.text.subword import adopt, load_subword, train

TEXTS = [*sentences(12, seed=5, longest=7), "the"]
LOWER = Normaliser("lower")
FORMER = TRANSFORMER | {"positions": 40}
LSTM = {"layers": 1, "dim": 16, "units": 24, "tied": True}
PRE = {**FORMER, "norm": "pre", "position": "none"}
MODELS = {
    **{name: settings(name, arch=FORMER) for name in ("causal", "masked", "tta")},
    "lstm": settings("lstm"),
    "gcnn": replace(settings("causal"), model="gcnn", arch={"dim": 16, "blocks": ["[4, 16] x 2"]}),
    "tied": settings("lstm", arch=LSTM),
    "projected": settings("lstm", arch=LSTM | {"projection": 12}),
    "pre": settings("causal", arch=PRE),
    "position": settings("tta", arch=FORMER | {"query": "position", "tied": False}),
    "pretta": settings("tta", arch=FORMER | {"norm": "pre"}),
    **{
        gate: replace(
            settings("causal"),
            model="gcnn",
            arch={"dim": 16, "blocks": ["[1, 12; 3, 20] x 2"], "gate": gate, "residual_scale": 1.0},
        )
        for gate in ("relu", "gtu")
    },
    "untied": settings("causal", arch=FORMER | {"tied": False}),
    "adaptive": settings("causal", arch=FORMER, criterion="adaptive", output={"cutoffs": [20]}),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The directory of a model of MODELS over some subwords, with random weights."""
    home = tmp_path_factory.mktemp("models")

    def make(name: str, scheme: str = "bpe", normaliser: Normaliser = LOWER) -> str:
        directory = home / f"{name}-{scheme}-{normaliser.hash[:8]}"
        if directory.exists():
            return str(directory)
        size = 48 if scheme in ("bpe", "unigram") else None
        subword = train(
            scheme, sentences(300, seed=1), size, normaliser, home / f"s-{directory.name}"
        )
        torch.manual_seed(1)
        lm = LanguageModel(MODELS[name], subword.size, counts=np.arange(subword.size))
        for parameter in lm.parameters():  # far from uniform, biases and all
            parameter.data.add_(torch.randn_like(parameter), alpha=0.2)
        with atomic_directory(directory, "config.yaml") as temporary:
            prepare_directory(temporary, MODELS[name], subword)
            save_weights(temporary, lm)
        return str(directory)

    return make


def our_scores(directory: str, texts) -> tuple[list[tuple[int, ...]], list[np.ndarray]]:
    """The ids of texts and the scores of their tokens, as `lmtools score` has them."""
    scorer = load_scorer(directory, "cpu")
    ids = scorer.prepare(texts)
    return ids, scorer.log_probs(ids)


@pytest.mark.parametrize(
    "name", ["causal", "masked", "tta", "lstm", "gcnn", "tied", "pre", "untied", "adaptive"]
)
def test_onnx_runtime_gives_our_scores(name, models, tmp_path):
    pytest.importorskip("onnx", reason="needs the package onnx")
    runtime = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")
    lm = models(name)
    assert main(f"export --lm {lm} --to onnx --out {tmp_path}/out".split()) == 0
    session = runtime.InferenceSession(tmp_path / "out/model.onnx")
    ids, expected = our_scores(lm, TEXTS)
    for some in (slice(0, 1), slice(None)):  # any number and length, any padding
        lengths = np.array([len(one) for one in ids[some]])
        x = np.full((len(lengths), lengths.max()), 7)
        for row, one in zip(x, ids[some], strict=True):
            row[: len(one)] = one
        nll, log_prob = session.run(None, {"x": x, "x_lens": lengths})
        for values, own, sentence in zip(log_prob, expected[some], nll, strict=True):
            assert values[: len(own)] == pytest.approx(own, abs=1e-4)
            assert not values[len(own) :].any()
            assert sentence == pytest.approx(-own.sum(), abs=1e-4)
    said = session.get_modelmeta().custom_metadata_map
    assert said["longest"] == str(load_scorer(lm, "cpu").lm.longest)
    assert load_subword(tmp_path / "out/subword").hash == said["subword"]


def test_onnx_refuses_what_it_has_no_operation_for(models, tmp_path, capsys):
    pytest.importorskip("onnx", reason="needs the package onnx")
    lm = models("projected")
    assert main(f"export --lm {lm} --to onnx --out {tmp_path}/out".split()) == 1
    assert "projection" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


HARD = [
    "", "the", "Señor  “Ünal’s” re-signed — ’twas 'tis' ''quoted'' rock'n'roll ½ ﬁne",
    "THE KING WENT\tto the 城市 of  ghosts\u00a0xyzzy qqq", "a▁b ... ' !", "straße ŉ it´s o`clock",
]  # fmt: skip


@pytest.mark.parametrize("name", ["causal", "masked", "untied"])
def test_hugging_face_models_give_our_scores(name, models, tmp_path):
    pytest.importorskip("transformers", reason="needs the package transformers")
    lm = models(name)
    assert main(f"export --lm {lm} --to hf --out {tmp_path}/out".split()) == 0
    theirs, expected = our_scores(f"hf:{tmp_path}/out", TEXTS), our_scores(lm, TEXTS)
    assert theirs[0] == expected[0]
    for values, own in zip(theirs[1], expected[1], strict=True):
        # BERT's ends of sentences are not scored
        known = len(own) - (name == "masked")
        assert values[:known] == pytest.approx(own[:known], abs=1e-4)


@pytest.mark.parametrize("name", ["causal", "masked"])
def test_transformers_gives_our_scores(name, models, tmp_path):
    """By transformers' own classes, tokenizer and boundary tokens."""
    transformers = pytest.importorskip("transformers", reason="needs the package transformers")
    lm = models(name)
    assert main(f"export --lm {lm} --to hf --out {tmp_path}/out".split()) == 0
    kind = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}[name]
    model = getattr(transformers, kind).from_pretrained(tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    _, expected = our_scores(lm, TEXTS)
    for text, own in zip(TEXTS, expected, strict=True):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            if name == "causal":
                logits = model(ids).logits[0, :-1]
            else:
                copies = ids.repeat(ids.shape[1] - 1, 1)
                copies[torch.arange(len(copies)), torch.arange(1, ids.shape[1])] = (
                    tokenizer.mask_token_id
                )
                logits = model(copies).logits[torch.arange(len(copies)), 1:].diagonal().T
        values = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        assert values.numpy() == pytest.approx(own, abs=1e-4)


# transformers' side of the test: log p of each token and of the end of each text
LOADING = """
import json, os, sys
sys.modules["lmtools"] = None
import torch, transformers

def score(path, texts):
    name = json.load(open(os.path.join(path, "config.json")))["architectures"][0]
    auto = getattr(transformers, name.replace("Lmtools", "AutoModel"))
    model = auto.from_pretrained(path, trust_remote_code=True).eval()
    batch = transformers.AutoTokenizer.from_pretrained(path)(
        texts, return_tensors="pt", padding=True
    )
    ids, real = batch["input_ids"], batch["attention_mask"]
    logits = model(input_ids=ids, attention_mask=real).logits
    one = ids[:1, :real[0].sum()]
    loss = model(one, labels=one).loss
    if "Causal" in name:
        logits = logits[:, :-1]
        made = model.generate(ids[:1, :2], max_new_tokens=3, do_sample=False)
        assert made[0, 2] == logits[0, 1].argmax()
    else:
        logits = logits[:, 1:]
    log_p = logits.log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
    rows = [row[: n - 1].tolist() for row, n in zip(log_p, real.sum(1))]
    if "Causal" in name:
        assert abs(loss + sum(rows[0]) / len(rows[0])) < 1e-4
    print(json.dumps(rows))

with torch.no_grad():
    for path in sys.argv[2:]:
        score(path, open(sys.argv[1]).read().split("\\n"))
"""
CUSTOM = ["lstm", "tied", "projected", "gcnn", "relu", "gtu", "tta", "position", "pre", "pretta"]


def test_custom_classes_give_our_scores(models, tmp_path):
    """In a process in which there is no lmtools, from right-padded sentences at once."""
    pytest.importorskip("transformers", reason="needs the package transformers")
    for name in CUSTOM:
        assert main(f"export --lm {models(name)} --to hf --out {tmp_path}/{name}".split()) == 0
    with pytest.raises(UserError, match="no code of a model is run here"):
        load_scorer(f"hf:{tmp_path}/lstm", "cpu")
    (tmp_path / "texts").write_text("\n".join(TEXTS))
    run = [sys.executable, "-c", LOADING, "texts", *CUSTOM]
    own_home = {**os.environ, "HF_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    made = subprocess.run(run, env=own_home, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    for name, line in zip(CUSTOM, made.stdout.splitlines(), strict=True):
        for values, own in zip(json.loads(line), our_scores(models(name), TEXTS)[1], strict=True):
            assert values == pytest.approx(own, abs=1e-4), name


def test_the_model_card_says_what_is_known(models, tmp_path, capsys):
    pytest.importorskip("transformers", reason="needs the package transformers")
    yaml = pytest.importorskip("yaml")
    lm = tmp_path / "lm"
    shutil.copytree(models("gcnn"), lm)
    noted = [{"step": 5, "tokens": 1234}, {"step": 9, "valid_loss": 2.0}, {"valid_loss": 1.5}]
    (lm / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in noted))
    run = ["export", "--lm", str(lm), "--to", "hf", "--out", f"{tmp_path}/out"]
    assert main(run) == 0
    card = (tmp_path / "out/README.md").read_text()
    for line in ("validation loss | 1.5000 nats a token (perplexity 4.48)", "training | 1,234",
                 "longest text | any"):  # fmt: skip
        assert line in card
    assert "say here what text it was trained on and under which licence" in card
    assert main([*run, "--licence", "cc0-1.0", "--corpus", "ten\nnovels | all"]) == 0
    card = (tmp_path / "out/README.md").read_text()
    assert "| training text | ten novels \\| all |" in card and "say here" not in card
    assert yaml.safe_load(card.split("---")[1])["license"] == "cc0-1.0"
    run[4] = "onnx"
    assert main([*run, "--licence", "cc0-1.0"]) == 1
    assert "has no model card" in capsys.readouterr().err


NORMALISED = [
    LOWER, Normaliser(), NORMALISERS["librispeech"], NORMALISERS["cased"],
    Normaliser("upper", "strip", "strip", "NFC"), Normaliser("lower", language="tr"),
    Normaliser("lower", language="lt"),
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["bpe", "unigram", "word", "char"])
def test_the_tokenizer_segments_as_ours(scheme, tmp_path):
    pytest.importorskip("tokenizers", reason="needs the package tokenizers")
    from lmtools.bridges.export.huggingface import make_tokenizer

    size = 80 if scheme in ("bpe", "unigram") else None
    texts = [*HARD, "DİŞ IŞIK I\u0307Ì diş", *sentences(300, seed=3)]
    for normaliser in NORMALISED:
        subword = train(scheme, sentences(300, seed=1) + HARD[:2], size, normaliser, tmp_path)
        tokenizer = make_tokenizer(subword, "lm")
        made = tokenizer.encode_batch(texts, add_special_tokens=False)
        assert [one.ids for one in made] == [subword.encode(text) for text in texts]


def test_whisper_s_normalisers_have_no_tokenizer(tmp_path):
    pytest.importorskip("tokenizers", reason="needs the package tokenizers")
    from lmtools.bridges.export.huggingface import make_tokenizer

    subword = train("word", ["it is 21"], None, NORMALISERS["whisper-english"], tmp_path / "sw")
    with pytest.raises(UserError, match="lm: its normaliser whisper-english is a program, which"):
        make_tokenizer(subword, "lm")


def test_hugging_face_refuses_what_it_has_no_class_for(models, tmp_path, capsys):
    pytest.importorskip("transformers", reason="needs the package transformers")
    assert main(f"export --lm {models('adaptive')} --to hf --out {tmp_path}/out".split()) == 1
    assert "a softmax, not adaptive" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("rule, symbols", [("nmt_nfkc_cf", []), ("identity", ["[x]"])])
def test_the_tokenizer_of_another_toolkits_model(rule, symbols, prefix, tmp_path):
    """What a SentencePiece model does to text by itself is in the tokenizer too."""
    pytest.importorskip("tokenizers", reason="needs the package tokenizers")
    from lmtools.bridges.export.huggingface import make_tokenizer

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(300, seed=1)), model_prefix=str(tmp_path / "theirs"),
        vocab_size=40, model_type="unigram", normalization_rule_name=rule,
        user_defined_symbols=symbols, add_dummy_prefix=prefix, minloglevel=2,
    )  # fmt: skip
    subword = adopt(tmp_path / "theirs.model", Normaliser(), tmp_path / "ours")
    if symbols:
        with pytest.raises(UserError, match="user-defined"):
            make_tokenizer(subword, "lm")
        return
    made = make_tokenizer(subword, "lm").encode("THE Ｋｉｎｇ ﬁne", add_special_tokens=False)
    assert made.ids == subword.encode("THE Ｋｉｎｇ ﬁne")
    assert made.ids == subword.encode("the king fine")
