"""ARPA files that other tools wrote, or that somebody damaged: what KenLM's users read of them, and
what `lmtools ngram convert` makes of them.
"""

import gzip
import itertools
import subprocess

import kenlm
import numpy as np
import pytest

from lmtools import cli
from lmtools.base.errors import LONGEST, UserError
from lmtools.ngram import NgramModel, arpa, arrays, build, derived
from lmtools.ngram.derived import convert
from lmtools.ngram.kenlm_files import find_program
from lmtools.text import Normaliser

PLAIN = """\\data\\
ngram 1=5
ngram 2=4

\\1-grams:
-1.0\t<unk>\t0
-99\t<s>\t-0.3
-0.8\t</s>\t0
-0.7\thello\t-0.2
-0.6\tworld\t-0.1

\\2-grams:
-0.2\t<s> hello
-0.3\thello world
-0.4\tworld </s>
-0.9\thello </s>

\\end\\
"""
TEXTS = ["hello world", "world hello", "hello mars", ""]


def change(*pairs):
    text = PLAIN
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


# what KenLM refuses and others read
DIALECTS = {
    "text": "written by a tool\n\n" + PLAIN,
    "bom": "\ufeff" + PLAIN,
    "blanks": PLAIN.replace("\t", " "),
    "trailing tab": change(("<s> hello\n", "<s> hello\t\n")),
    "cr": PLAIN.replace("\n", "\r"),
    "counts": change(("2=4", "2 = 4")),
    "no blank line": change(("2=4\n\n", "2=4\n")),
    "no end": change(("\\end\\\n", "")),
    "after the end": PLAIN + "more\n",
    "weights of the highest order": change(("<s> hello", "<s> hello\t-0.1")),
    "rounded": change(("-0.6\tworld", "0.00001\tworld")),
    "spelled": change(("-0.6\tworld", "-Inf\tworld")),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_dialects_are_converted_and_what_refuses_them_says_so(tmp_path, name):
    path, out = tmp_path / "lm.arpa", tmp_path / "out.arpa"
    path.write_text(DIALECTS[name], newline="")
    with pytest.raises(UserError, match=r"lm\.arpa: KenLM does not read.*lmtools ngram convert "):
        NgramModel.load(path)
    convert(path, out, "none")
    number = {"rounded": "0", "spelled": "-99"}.get(name, "-0.6")
    (tmp_path / "same.arpa").write_text(change(("-0.6\tworld", f"{number}\tworld")))
    made, expected = (NgramModel.load(tmp_path / each) for each in ("out.arpa", "same.arpa"))
    np.testing.assert_allclose(made.score(TEXTS)[0], expected.score(TEXTS)[0], atol=1e-4)


def test_what_kenlm_reads_is_read_as_before(tmp_path):
    """Signs, exponents, CR LF, tabs between words, blank lines, comments, several members."""
    packed = gzip.compress(PLAIN[:40].encode()) + gzip.compress(PLAIN[40:].encode())
    (tmp_path / "lm.arpa.gz").write_bytes(packed)
    expected = NgramModel.load(tmp_path / "lm.arpa.gz").score(TEXTS)[0]
    for text in (
        change(("-0.3\thello", "-3.0e-1\thello"), ("2=4", "2=+4")),
        PLAIN.replace("\n", "\r\n"),
        change(("hello world", "hello\tworld"), ("-0.4\tworld", "\n-0.4\tworld")),
        "# a comment\n\n" + PLAIN,
    ):
        (tmp_path / "lm.arpa").write_text(text, newline="")
        assert np.array_equal(NgramModel.load(tmp_path / "lm.arpa").score(TEXTS)[0], expected)
        ids = arrays.new_vocabulary()
        assert arrays.read_arpa(tmp_path / "lm.arpa", ids).counts == [5, 4]


HOSTILE = {
    "negative": ("2=4", "2=-2"),
    "superscript": ("2=4", "2=²"),
    "another script's": ("2=4", "2=４"),
    "5,000 digits": ("2=4", "2=" + 5000 * "9"),
    "30 digits": ("2=4", "2=" + 30 * "9"),
    "of 64 bits": ("2=4", "2=18446744073709551615"),
    "more than fit": ("1=5", "1=4000000000000"),
    "underscore": ("2=4", "2=1_0"),
    "order 0": ("ngram 1", "ngram 0=1\nngram 1"),
    "order left out": ("ngram 2", "ngram 3"),
    "too many": ("2=4", "2=5"),
    "too few": ("2=4", "2=3"),
    "none": ("1=5", "1=0"),
    "positive": ("-0.7\thello", "0.7\thello"),
    "a positive bigram": ("-0.4\tworld", "0.4\tworld"),
    "grouped digits": ("-0.7\thello", "-0_7\thello"),
    "a bigram's": ("-0.4\tworld", "-0_4\tworld"),
    "digits of another script": ("-0.7\thello", "-0.７\thello"),
    "nan": ("-0.7\thello", "nan\thello"),
    "inf": ("-0.7\thello", "inf\thello"),
    "weight inf": ("hello\t-0.2", "hello\tinf"),
    "weight nan": ("hello\t-0.2", "hello\tNaN"),
    "weight too large for a number": ("hello\t-0.2", "hello\t1e400"),
    "a unigram twice": ("-0.6\tworld", "-0.6\thello"),
    "no unigram": ("hello world", "hello mars"),
    "cut in a line": ("</s>\n\n\\end\\\n", "<"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.filterwarnings("error")
def test_hostile_numbers_are_refused_in_a_line(tmp_path, capfd, name):
    path, text = tmp_path / "lm.arpa", tmp_path / "t.txt"
    path.write_text(change(HOSTILE[name]))
    text.write_text("hello world\n")
    out = str(tmp_path / "out")
    for call in (
        ["ppl", "--lm", str(path), "--text", str(text), "--cache", "none"],
        ["ngram", "prune", str(path), "--threshold", "0", "--kenlm", "none", "--out", out],
        ["ngram", "convert", str(path), f"{out}.arpa"],
    ):
        assert cli.main(call) == 1
        (line,) = capfd.readouterr().err.splitlines()
        assert f"{path}:" in line and "; " in line and len(line) < LONGEST
        assert sorted(tmp_path.iterdir()) == [path, text]


def test_a_bigram_twice_and_weights_that_no_model_has(tmp_path):
    path = tmp_path / "lm.arpa"
    for pair in (("world </s>", "hello </s>"), ("hello\t-0.2", "hello\t1e9")):
        path.write_text(change(pair))
        with pytest.raises(UserError, match=r"has an n-gram twice|no logarithm of a back-off"):
            convert(path, tmp_path / "out.arpa")
    with pytest.raises(UserError, match=r"gives mars 10\^1e\+09 for a probability"):
        NgramModel.load(path).score(["hello mars"])


LEFT_OUT = {  # beginnings in the first, endings in the second, too many for KenLM's own room
    "beginnings": ["world hello world", "world world hello"],
    "endings": ["<s> hello world", "hello world </s>", "hello world world", "hello world hello"],
}


@pytest.mark.parametrize("what", LEFT_OUT)
@pytest.mark.parametrize("size", [1, 100])
def test_ngrams_that_others_leave_out_are_put_back(tmp_path, monkeypatch, what, size):
    """With the probability of back-off, so that no probability changes."""
    monkeypatch.setattr("lmtools.ngram.arrays.CHUNK", size)
    rows = LEFT_OUT[what]
    third = "".join(f"-0.{i}5\t{row}\n" for i, row in enumerate(rows, 1))
    path, out = tmp_path / "lm.arpa", tmp_path / "out.arpa"
    path.write_text(change(("2=4\n", f"2=4\nngram 3={len(rows)}\n"),
                           ("\n\\end", f"\n\\3-grams:\n{third}\n\\end")))  # fmt: skip
    if what == "beginnings":
        with pytest.raises(UserError, match=r"The context of every .*lmtools ngram convert"):
            NgramModel.load(path)
    made = convert(path, out, "none")[0]
    assert len(made.levels[1]) > 4 and len(made.levels[2]) == len(rows)
    orders = arpa.read(path)

    def log_prob(*words):
        if words in orders[len(words) - 1]:
            return orders[len(words) - 1][words][0]
        context = orders[len(words) - 2].get(words[:-1], (0, 0))
        return context[1] + log_prob(*words[1:])

    vocabulary, model = ["hello", "world", "</s>"], NgramModel.load(out)
    for text in itertools.product(vocabulary[:2], repeat=4):
        words = ["<s>", *text, "</s>"]
        expected = [log_prob(*words[max(0, i - 2) : i + 1]) for i in range(1, len(words))]
        scores = model.conditional(" ".join(text))[0] / np.log(10)
        np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_orders_that_kenlm_does_not_read(tmp_path):
    path = tmp_path / "lm.arpa"
    more = "".join(f"ngram {n}=0\n" for n in range(3, 9))
    empty = "".join(f"\\{n}-grams:\n\n" for n in range(3, 9))
    path.write_text(change(("2=4\n", f"2=4\n{more}"), ("\\end", f"{empty}\\end")))
    with pytest.raises(UserError, match="a model of order 8, but KenLM reads 6 at most"):
        NgramModel.load(path)
    assert convert(path, tmp_path / "out.arpa")[0].order == 2  # the empty ones are left out


def test_words_that_are_not_utf8_are_told(tmp_path):
    path = tmp_path / "lm.arpa"
    path.write_text(PLAIN.replace("world", "wörld"), encoding="latin-1")
    (note,) = NgramModel.load(path).notes
    assert note.place == f"{path}:10" and "not UTF-8" in note.cause


def test_symbols_that_are_missing(tmp_path, capfd):
    """Without <s> nothing changes but what follows it; without </s> and <unk> they have none."""
    path, out = tmp_path / "lm.arpa", tmp_path / "out.arpa"
    path.write_text(change(("-99\t<s>\t-0.3\n", ""), ("-0.2\t<s> hello\n", ""), ("1=5", "1=4"),
                           ("2=4", "2=3")))  # fmt: skip
    with pytest.raises(UserError, match=r"lmtools ngram convert"):
        NgramModel.load(path)
    assert convert(path, out)[1] == []
    assert NgramModel.load(out).conditional("hello")[0][0] == pytest.approx(-0.7 * np.log(10))
    path.write_text(change(("-0.8\t</s>\t0\n", ""), ("-0.4\tworld </s>\n-0.9\thello </s>\n", ""),
                           ("-1.0\t<unk>\t0\n", ""), ("1=5", "1=3"), ("2=4", "2=2")))  # fmt: skip
    assert [line.split(": ")[1] for line in convert(path, out)[1]] == ["lists no <unk>"] * 1 + [
        "lists no </s>"
    ]
    assert arpa.read(out)[0]["</s>",][0] == arpa.read(out)[0]["<unk>",][0] == -99


def test_capital_marks_of_sentences_are_refused_with_what_mends_them(tmp_path):
    """As CMU Sphinx has them, which would be words: every sentence would be improbable."""
    path = tmp_path / "lm.arpa"
    path.write_text(PLAIN.replace("<s>", "<S>").replace("</s>", "</S>"))
    with pytest.raises(UserError, match=r"lm.arpa:\d+: <S> and </S> in place of <s>") as told:
        NgramModel.load(path)
    with pytest.raises(UserError, match=r"lm.arpa:\d+: <S> and </S> in place of <s>"):
        convert(path, tmp_path / "out.arpa")
    assert not (tmp_path / "out.arpa").exists()
    command = str(told.value).partition("; write these: ")[2].replace("NEW.arpa", "new.arpa")
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "new.arpa").read_text() == PLAIN


def test_names_of_outputs_and_inputs(tmp_path):
    path = tmp_path / "lm.arpa"
    path.write_text(PLAIN)
    for given, out, cause in (
        (path, "x.txt", "its suffix names no form"),
        (tmp_path, "x.arpa", "lmtools export --to arpa"),
        (path, "x.bin", "needs its build_binary"),
    ):
        with pytest.raises(UserError, match=cause):
            convert(given, tmp_path / out, "none")
    convert(path, tmp_path / "x.arpa.gz")
    convert(tmp_path / "x.arpa.gz", tmp_path / "y.arpa")
    assert (
        gzip.decompress((tmp_path / "x.arpa.gz").read_bytes()) == (tmp_path / "y.arpa").read_bytes()
    )


@pytest.mark.skipif(find_program() is None, reason="KenLM's build_binary is not installed")
def test_the_binary_form_scores_the_same(tmp_path):
    (tmp_path / "lm.arpa").write_text(PLAIN.replace("\t", " "))
    (tmp_path / "same.arpa").write_text(PLAIN)
    convert(tmp_path / "lm.arpa", tmp_path / "lm.bin")
    made, expected = (NgramModel.load(tmp_path / name) for name in ("lm.bin", "same.arpa"))
    np.testing.assert_allclose(made.score(TEXTS)[0], expected.score(TEXTS)[0], atol=1e-6)


def test_quantize_says_what_build_binary_does_not_read(tmp_path):
    (tmp_path / "build_binary").write_text("#!/bin/sh\necho Expected tab >&2\nexit 1\n")
    (tmp_path / "build_binary").chmod(0o755)
    (tmp_path / "lm.arpa").write_text(PLAIN.replace("\t", " "))
    with pytest.raises(UserError, match=r"Expected tab.*lmtools ngram convert"):
        derived.quantize(tmp_path / "lm.arpa", tmp_path / "q", kenlm=str(tmp_path))
    (tmp_path / "lm.arpa").write_text(PLAIN)
    with pytest.raises(UserError, match="Expected tab"):
        derived.quantize(tmp_path / "lm.arpa", tmp_path / "q", kenlm=str(tmp_path))


SPACED = [
    "oui\u00a0!", "10\u202f000", "東\u3000京", "a\u0085b", "a\u2028b", "a\vb", "a\fb", "a\x1cb",
]  # fmt: skip


def test_words_with_other_blanks_stay_whole(tmp_path):
    """As KenLM parts words: in a bare file, and in what is made of it, not in models of ours."""
    words = "".join(f"-0.9\t{word}\t-0.1\n" for word in SPACED)
    path = tmp_path / "lm.arpa"
    path.write_text(change(("-0.6\tworld", words + "-0.6\tworld"), ("1=5", "1=13")), newline="")
    line = "  ".join(SPACED) + "\thello\0world\r"
    bare = NgramModel.load(path)
    assert bare.tokens(line) == [*SPACED, "hello", "world"]
    state, total = kenlm.State(), 0.0
    bare.kenlm.BeginSentenceWrite(state)
    for word in (*SPACED, "hello", "world", "</s>"):
        before, state = state, kenlm.State()
        total += bare.kenlm.BaseScore(before, word, state)
    assert bare.score([line])[0][0] == pytest.approx(total * np.log(10))
    assert bare.score([line])[2][0] == 0
    (tmp_path / "t.txt").write_text(line.replace("\0", " ") + "\n", newline="")
    derived.prune(path, tmp_path / "pruned", 0.0, "none")
    derived.mix([path, tmp_path / "pruned"], tmp_path / "mixed", None, [tmp_path / "t.txt"], "none")
    for name in ("pruned", "mixed"):
        made = NgramModel.load(tmp_path / name)
        assert made.foreign and made.score([line])[1:] == ([11], [0])
    (tmp_path / "u.txt").write_text("oui ! oui ! hello\n" * 3)
    build([tmp_path / "u.txt"], 2, tmp_path / "own", Normaliser(), kenlm="none")
    assert NgramModel.load(tmp_path / "own").tokens("oui\u00a0!") == ["oui", "!"]
