import hashlib
import lzma
from shlex import split

import numpy as np
import pytest
from needs import needs

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.ngram import Description, NgramModel, arpa, build
from lmtools.text import Normaliser
from lmtools.text.subword import load_subword, train


def test_the_directory_is_whole(directory, text, lines):
    made = Description.load(directory)
    assert (made.kind, made.order, made.estimator, made.file) == ("ngram", 3, "lmtools", "lm.arpa")
    assert made.text_sha256 == [hashlib.sha256(text.read_bytes()).hexdigest()]
    assert made.sentences == sum(map(bool, lines)) < len(lines)
    assert made.tokens == sum(len(line.split()) for line in lines)
    assert made.counts == [len(section) for section in arpa.read(directory / "lm.arpa")]
    assert len(made.discounts) == 3
    words = load_subword(directory / "subword")
    vocabulary = {"scheme": "word", "size": words.size}
    assert made.facts == {"parameters": sum(made.counts), "vocabulary": vocabulary}
    assert words.normaliser == Normaliser(case="lower")
    assert words.counts.sum() == made.tokens


def test_compressed_text_in_two_files_is_the_same_text(directory, lines, tmp_path):
    with lzma.open(tmp_path / "a.xz", "wt", encoding="utf-8") as first:
        first.write("\n".join(lines[:100]))
    (tmp_path / "b").write_text("\n".join(lines[100:]), encoding="utf-8")
    texts = [tmp_path / "a.xz", tmp_path / "b"]
    build(texts, 3, tmp_path / "lm", Normaliser(case="lower"), kenlm="none")
    assert (tmp_path / "lm/lm.arpa").read_bytes() == (directory / "lm.arpa").read_bytes()


@pytest.mark.parametrize("order", range(1, 7))
def test_every_order_loads_and_scores(text, tmp_path, order):
    build([text], order, tmp_path / "lm", Normaliser(), kenlm="none")
    log_prob, tokens, unknown = NgramModel.load(tmp_path / "lm").score(["w0 w1", "zzz"])
    assert tokens.tolist() == [3, 2] and unknown.tolist() == [0, 1]
    assert np.isfinite(log_prob).all() and (log_prob < 0).all()


def test_a_unigram_model_ignores_history(text, tmp_path):
    build([text], 1, tmp_path / "lm", Normaliser(), kenlm="none")
    model = NgramModel.load(tmp_path / "lm")
    forward, backward = model.score(["w0 w1 w2 w2", "w2 w2 w1 w0"])[0]
    assert forward == pytest.approx(backward)
    assert model.conditional("w0")[0][0] == pytest.approx(
        np.log(10) * arpa.read(tmp_path / "lm/lm.arpa")[0]["w0",][0]
    )


def test_pieces_of_a_subword_model(text, tmp_path, capsys):
    characters = train("char", ["ab ba w0"], None, Normaliser(case="lower"), tmp_path / "chars")
    options = {
        "--text": text,
        "--order": 4,
        "--out": tmp_path / "lm",
        "--subword": tmp_path / "chars",
        "--kenlm": "none",
    }
    assert main(["ngram", *(str(part) for option in options.items() for part in option)]) == 0
    model = NgramModel.load(tmp_path / "lm")
    assert model.subword.hash == characters.hash
    assert model.tokens("W0 x") == ["w", "0", "▁", "x"]
    assert model.score(["W0 x"])[1:] == (5, 1)
    assert "4-gram model by lmtools" in capsys.readouterr().out


def test_an_older_model_is_replaced_and_other_things_are_not(text, tmp_path):
    out = tmp_path / "lm"
    build([text], 2, out, Normaliser(), kenlm="none")
    build([text], 3, out, Normaliser(), kenlm="none")
    assert Description.load(out).order == 3
    (out / "config.yaml").write_text("model: causal\n")
    with pytest.raises(UserError, match="describes another kind of model"):
        build([text], 2, out, Normaliser(), kenlm="none")
    (out / "config.yaml").unlink()
    with pytest.raises(UserError, match=r"exists and holds no config\.yaml"):
        build([text], 2, out, Normaliser(), kenlm="none")
    assert (out / "lm.arpa").exists()


def test_a_failure_leaves_nothing(tmp_path):
    (tmp_path / "bad").write_bytes(b"fine\n\xff\n")
    with pytest.raises(UserError, match="bad:2: not UTF-8"):
        build([tmp_path / "bad"], 2, tmp_path / "lm", Normaliser(), kenlm="none")
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


@pytest.mark.parametrize("order", [0, 7])
def test_orders_that_kenlm_has_not(text, tmp_path, order):
    with pytest.raises(UserError, match=f"--order {order}: choose 1 to 6"):
        build([text], order, tmp_path / "lm", Normaliser())


def test_the_verb_warns_once_of_tiny_text_and_of_reserved_words(tmp_path, capsys):
    (tmp_path / "text").write_text("a b\nA <unk> c\n")
    verb = split(f"ngram --text {tmp_path}/text --order 2 --case lower --out {tmp_path}/lm --kenlm")
    assert main([*verb, "none"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        f"{tmp_path}/lm: too little text for the discounts of order 1 2; 0.5 1.0 1.5 instead",
        f"{tmp_path}/lm: left out 1 words of the text that read <s>, </s> or <unk>",
    ]
    assert (
        said.out == f"{tmp_path}/lm: 2-gram model by lmtools, n-grams 6 5; 2 sentences, 4 tokens\n"
    )
    assert main([*verb, str(tmp_path)]) == 1
    assert "has no build_binary; run utils/install_kenlm.sh" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["2", "1 3 2", "1 1 1 2", "1 9999"])
def test_cut_offs_that_cannot_be(text, tmp_path, capsys, given):
    call = ["ngram", "--text", str(text), "--order", "3", "--kenlm", "none"]
    out = tmp_path / "lm"
    assert main([*call, "--min-count", *given.split(), "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("lmtools ngram: --min-count ")
    assert said.count("\n") == 1
    assert not out.exists()
    assert main([*call, "--min-count", "1", "2", "--out", str(out)]) == 0


@needs("bridges")
@pytest.mark.parametrize("form", ["hf", "onnx"])
def test_neural_forms_of_an_ngram_model_are_refused(directory, tmp_path, capsys, form):
    """By what the model is, and what it can be; a file has no vocabulary."""
    for lm, said in (
        (directory, "is an n-gram model; use --to arpa or fst"),
        (directory / "lm.arpa", "is one file; give the directory of lmtools ngram or train"),
    ):
        words = ["export", "--lm", str(lm), "--to", form, "--out", str(tmp_path / "o")]
        assert main(words) == 1
        assert capsys.readouterr().err == f"lmtools export: {lm}: {said}\n"
        assert not (tmp_path / "o").exists()
