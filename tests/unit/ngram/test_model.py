import gzip
import math
import pickle
import shutil

import kenlm
import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.ngram import NgramModel, arpa

HYPOTHESES = [
    *("w0 w1 w2", "W3 w0", "", "w0 zzz w1 qqq", "wört4 w0 w0", "<s> w0 </s>", "w0\0w1 w2"),
    "  w0   w1 ",
]


@pytest.fixture(scope="module")
def model(directory):
    return NgramModel.load(directory)


@pytest.fixture(scope="module")
def sections(directory):
    return arpa.read(directory / "lm.arpa")


def evaluate(sections, history, word):
    """log10 p(word | history) from the rows of an ARPA file, by its definition (recursively)."""
    words = (*history, word)
    if len(words) > len(sections):
        return evaluate(sections, history[1:], word)
    if words in sections[len(words) - 1]:
        return sections[len(words) - 1][words][0]
    if not history:
        return sections[0]["<unk>",][0]
    backoff = sections[len(history) - 1].get(history, (0, 0))[1]
    return backoff + evaluate(sections, history[1:], word)


def test_queries_equal_the_arpa_file(model, sections, lines):
    known = {words[0] for words in sections[0]}
    for text in [*lines[:40], "w0 never-seen w1", "zzz", ""]:
        log_prob, unknown = model.conditional(text)
        words = [word if word in known else "<unk>" for word in text.split()]
        history = ("<s>", *words)
        expected = [
            evaluate(sections, history[: i + 1], word) for i, word in enumerate((*words, "</s>"))
        ]
        np.testing.assert_allclose(log_prob, np.array(expected) * math.log(10), atol=1e-5)
        assert unknown.tolist() == [word == "<unk>" for word in words] + [False]
        assert model.find_unknown(model.tokens(text)).tolist() == unknown.tolist()[:-1]


def test_score_sums_and_counts(model):
    log_prob, tokens, unknown = model.score(HYPOTHESES)
    assert tokens.tolist() == [4, 3, 1, 5, 4, 4, 3, 3]
    assert unknown.tolist() == [0, 0, 0, 2, 0, 2, 1, 0]
    for row, text in zip(log_prob, HYPOTHESES, strict=True):
        assert row == pytest.approx(model.conditional(text)[0].sum())
    assert log_prob.dtype == np.float64
    assert log_prob[0] == pytest.approx(model.kenlm.score("w0 w1 w2") * math.log(10), abs=1e-5)
    assert model.score([])[0].shape == (0,)


def test_the_normaliser_is_applied(model):
    assert model.score(["W3 W0"])[0] == model.score(["w3 w0"])[0]
    assert model.tokens("W3 </s>") == ["w3", "<unk>"]


def test_every_seen_history_sums_to_one(model, sections):
    """Over all words but <s>, in KenLM itself."""
    words = [word for (word,) in sections[0] if word != "<s>"]
    histories = {context[:-1] for section in sections for context in section} - {()}
    after = kenlm.State()
    for history in [(), *histories]:
        state = kenlm.State()
        model.kenlm.NullContextWrite(state)
        for word in history:
            following = kenlm.State()
            if word == "<s>":
                model.kenlm.BeginSentenceWrite(following)
            else:
                model.kenlm.BaseScore(state, word, following)
            state = following
        total = sum(10 ** model.kenlm.BaseScore(state, word, after) for word in words)
        assert total == pytest.approx(1, abs=2e-5), history


def test_bare_files_have_white_space_tokens(model, directory, tmp_path):
    packed = tmp_path / "lm.arpa.gz"
    packed.write_bytes(gzip.compress((directory / "lm.arpa").read_bytes()))
    for path in (directory / "lm.arpa", packed):
        bare = NgramModel.load(path)
        assert bare.subword is None
        assert bare.order == 3
        np.testing.assert_array_equal(bare.score(HYPOTHESES[:1])[0], model.score(HYPOTHESES[:1])[0])
        assert bare.score(["W3 w0"])[2] == 1
        assert bare.hash != model.hash
        assert bare.score(["half a surrogate \udce9"])[2] == 4


def test_pickles(model):
    assert pickle.loads(pickle.dumps(model)).hash == model.hash


def test_the_hash_follows_content_not_place(model, directory, tmp_path):
    copy = shutil.copytree(directory, tmp_path / "copy")
    assert NgramModel.load(copy).hash == model.hash


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("lm.arpa", b"", "not an ARPA file"),
        ("lm.arpa", b"\xff\xfe junk \x00", "not an ARPA file"),
        ("lm.arpa", b"\\data\\\nngram 1=3\n", "ends before"),
        ("lm.arpa.gz", b"not gzip", "damaged archive"),
        (
            "lm.bin",
            b"mmap lm http://kheafield.com/code format version 5\n\0" + b"\1" * 200,
            "KenLM cannot read it",
        ),
    ],
)
def test_damaged_bare_files_are_refused(tmp_path, name, content, cause):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=cause) as caught:
        NgramModel.load(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name)) and "\n" not in str(caught.value)


def test_missing_and_foreign_directories_are_refused(directory, tmp_path):
    with pytest.raises(UserError, match="nowhere: cannot read"):
        NgramModel.load(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"config\.yaml: cannot read"):
        NgramModel.load(tmp_path)
    (tmp_path / "config.yaml").write_text("model: causal\n")
    with pytest.raises(UserError, match="describes no n-gram model"):
        NgramModel.load(tmp_path)


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-9], lambda content: content.replace(b"-1", b"-2", 1)]
)
def test_a_damaged_directory_is_refused(directory, tmp_path, damage):
    copy = shutil.copytree(directory, tmp_path / "copy")
    (copy / "lm.arpa").write_bytes(damage((copy / "lm.arpa").read_bytes()))
    with pytest.raises(UserError, match=r"lm\.arpa: is not the file that"):
        NgramModel.load(copy)


@pytest.mark.parametrize("suffix, pack", [("", bytes), (".gz", gzip.compress)])
def test_a_line_without_end_is_refused_before_kenlm_holds_it(tmp_path, monkeypatch, suffix, pack):
    monkeypatch.setenv("LMTOOLS_MAX_LINE", "1K")
    path = tmp_path / f"lm.arpa{suffix}"
    path.write_bytes(pack(b"\\data\\\nngram 1=1\n\n\\1-grams:\n" + bytes(2000)))
    with pytest.raises(UserError, match=r"lm\.arpa.*:5: a line of more than 1024 bytes"):
        NgramModel.load(path)
