import gzip
import itertools
import json
import math
import pickle
import re
import shutil
from shlex import split

import kenlm
import numpy as np
import pytest
from scoring import make_scorer, walk

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.ngram import Description, NgramModel, arpa, build
from lmtools.ngram.sentences import RESERVED, UNKNOWN
from lmtools.score.ngram import NgramScorer
from lmtools.text import NORMALISERS, Normaliser
from lmtools.text.subword import train

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


LOWER = Normaliser(case="lower")
ORDER = 3


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("closed")


@pytest.fixture(scope="module")
def written(lines, home):
    """A text as WikiText is written: some <unk>, some words like KenLM's symbols."""
    text = home / "text"
    some = [
        line.replace("w7", "<unk>").replace("w31", "<UNK>").replace("w40", "</s>") for line in lines
    ]
    text.write_text("\n".join([*some, "<unk> W0 = <unk>"]) + "\n", encoding="utf-8")
    return text


@pytest.fixture(scope="module")
def words(written, home):
    """The list of the words that occur 12 times and more, and two that the text lacks."""
    return train(
        "word",
        [*written.read_text().splitlines(), *["unheard of"] * 12],
        None,
        LOWER,
        home / "words",
        min_count=12,
    )


@pytest.fixture(scope="module")
def closed(written, words, home):
    build([written], ORDER, home / "own", words, kenlm="none", closed=True)
    return NgramModel.load(home / "own")


def replaced(words, written, by):
    """The text with `by` in place of all that the list lacks, by a plain loop."""
    known = set(words.vocabulary[5:]) - RESERVED
    lines = [
        [word if word in known else by for word in line.lower().split()]
        for line in written.read_text().splitlines()
    ]
    return [" ".join(line) for line in lines]


def test_config_says_so_and_open_models_have_none(closed, words, directory):
    made = Description.load(closed.path)
    assert made.unknown == UNKNOWN == closed.unknown and made.reserved == 0
    assert closed.subword.hash == words.hash
    assert Description.load(directory).unknown is None
    assert NgramModel.load(directory).unknown is None


@pytest.mark.parametrize("history", ["", "w0", "w0 w1", "w0 zzz", "zzz zzz", "unheard", "<unk> w0"])
def test_probabilities_of_the_closed_vocabulary_sum_to_one(closed, words, history):
    """Each word that the model knows, any outside, and the end."""
    known = [word for word in words.vocabulary[5:] if word in closed.kenlm]
    place = len(history.split())
    asked = [closed.conditional(f"{history} {word}")[0][place] for word in [*known, "never-seen"]]
    total = sum(map(math.exp, [*asked, closed.conditional(history)[0][-1]]))
    assert total == pytest.approx(1, abs=2e-5)


def test_equals_a_text_with_an_ordinary_word_instead(closed, written, words, home):
    """The same n-grams and back-offs; <unk>'s share of the uniform part differs."""
    (home / "plain").write_text(
        "\n".join(replaced(words, written, "rare")) + "\n", encoding="utf-8"
    )
    other = build([home / "plain"], ORDER, home / "open", LOWER, kenlm="none")
    made = Description.load(closed.path)
    assert (made.counts, made.discounts, made.fallback, made.tokens) == (
        other.counts,
        other.discounts,
        other.fallback,
        other.tokens,
    )
    ours, theirs = arpa.read(closed.path / "lm.arpa"), arpa.read(home / "open/lm.arpa")
    # what each of the others gets of it
    share = 10 ** theirs[0]["<unk>",][0] / (len(theirs[0]) - 2)
    for n, (section, same) in enumerate(zip(ours, theirs, strict=True)):
        renamed = {
            tuple("rare" if word == UNKNOWN else word for word in gram): row
            for gram, row in section.items()
        }
        assert renamed.keys() == same.keys()
        for gram, (prob, backoff) in renamed.items():
            assert backoff == pytest.approx(same[gram][1], abs=2e-6)
            if n == 0 and gram[0] not in ("<s>", "<unk>"):
                assert 10**prob - 10 ** same[gram][0] == pytest.approx(share, rel=0.02)
    assert ours[0]["<unk>",][0] == -99


def test_what_is_outside_counts_as_unknown(closed):
    text = "w0 <unk> w1 Zzz </s> unheard"
    assert closed.tokens(text) == ["w0", UNKNOWN, "w1", UNKNOWN, UNKNOWN, UNKNOWN]
    assert closed.conditional(text)[1].tolist() == [False, True, False, True, True, True, False]
    assert closed.score([text, ""])[2].tolist() == [4, 0]
    assert closed.find_unknown(closed.tokens(text)).tolist() == [
        False,
        True,
        False,
        True,
        True,
        True,
    ]
    assert closed.score(["zzz"])[0] == closed.score(["<unk>"])[0] == closed.score(["Qqq"])[0]
    # the normaliser makes it `unk`, which the list lacks
    assert closed.tokens(UNKNOWN) == [UNKNOWN]


def test_unknown_words_cost_what_the_text_says(closed, directory):
    """Every third word is outside: far likelier than an open model's <unk>."""
    assert closed.conditional("zzz")[0][0] > math.log(0.05)
    assert NgramModel.load(directory).conditional("zzz")[0][0] < math.log(0.01)


def test_lattices_are_scored_alike(closed):
    text = "w0 zzz w1 <unk> unheard w0"
    total = sum(walk(make_scorer(NgramScorer, closed).prefixes(), text.split()))
    assert total == pytest.approx(closed.score([text])[0][0], abs=1e-5)


def test_ppl_of_text_with_unk_in_it(written, words, home, tmp_path):
    """The whole way: list, model, perplexity; against the ARPA file's own rows."""
    (tmp_path / "test").write_text("w0 <unk> w1\n\n<unk> never = w2\n")
    verb = split(f"ngram --text {written} --order 2 --subword {home}/words --out {tmp_path}/lm")
    assert main([*verb, "--unk", "--kenlm", "none"]) == 0
    ppl = split(
        f"ppl --lm {tmp_path}/lm --text {tmp_path}/test --out {tmp_path}/ppl.json --cache none"
    )
    assert main(ppl) == 0
    figures = json.loads((tmp_path / "ppl.json").read_text())
    sections = arpa.read(tmp_path / "lm/lm.arpa")
    total = 0.0
    for line in (["w0", UNKNOWN, "w1"], [UNKNOWN, UNKNOWN, UNKNOWN, "w2"]):
        for before, word in itertools.pairwise(["<s>", *line, "</s>"]):
            row = sections[1].get((before, word))
            total += row[0] if row else sections[0][before,][1] + sections[0][word,][0]
    assert figures["log_prob"] == pytest.approx(total * math.log(10), abs=1e-4)
    assert (figures["words"], figures["sentences"], figures["oov"]) == (7, 2, 4)
    assert figures["word_ppl"] == pytest.approx(math.exp(-figures["log_prob"] / 9))
    rows = [NgramModel.load(tmp_path / "lm").conditional(text) for text in ("w0 x w1", "x y = w2")]
    known = np.concatenate([scores[~unknown] for scores, unknown in rows])  # as KenLM's query
    assert len(known) == 5
    assert figures["known_ppl"] == pytest.approx(np.exp(-known.mean()))


@pytest.mark.parametrize("more", [(), ("lm",)])
@pytest.mark.parametrize("name", ["none", "librispeech", "whisper-basic", "librispeech:case=upper"])
def test_ppl_counts_the_lines_that_estimation_reads(tmp_path, capsys, name, more):
    text = tmp_path / "t"
    text.write_text("A b, c\n...\n\n - \na b zzz\n\ufeff \n!?\n")
    lm = tmp_path / "lm"
    make = split(f"ngram --text {text} --order 2 --out {lm} --kenlm none --normaliser {name}")
    assert main(make) == 0
    made = capsys.readouterr().out
    call = split(f"ppl --lm {lm} --text {text}") + [a for o in more for a in ("--lm", tmp_path / o)]
    assert main([*map(str, call), *("--mix", "0.5") * bool(more)]) == 0
    told = capsys.readouterr().out
    sentences, tokens = re.search(r"(\d+) sentences, (\d+) tokens", made).groups()
    assert f"\n{sentences} sentences, {tokens} words, {int(sentences) + int(tokens)} tokens" in told
    assert "without unknown tokens" not in told
    text.write_text("...\n")
    assert main([*map(str, call), *("--mix", "0.5") * bool(more)]) == int(name != "none")


def test_a_text_without_unknown_words_leaves_room_for_them(tmp_path):
    (tmp_path / "text").write_text("a b a\nb a\n")
    build(
        [tmp_path / "text"],
        2,
        tmp_path / "lm",
        train("word", ["a b"], None, Normaliser(), tmp_path / "w"),
        kenlm="none",
        closed=True,
    )
    model = NgramModel.load(tmp_path / "lm")
    values = [model.conditional(word)[0][0] for word in ("a", "b", "zzz", "")]
    assert sum(map(math.exp, values)) == pytest.approx(1, abs=1e-5) and values[2] > math.log(1e-3)


@pytest.mark.parametrize("scheme", ["bpe", "char"])
def test_pieces_can_be_closed_too(lines, text, tmp_path, scheme):
    subword = train(scheme, lines, 40, NORMALISERS["none"], tmp_path / "pieces")
    build([text], 2, tmp_path / "lm", subword, kenlm="none", closed=True)
    model = NgramModel.load(tmp_path / "lm")
    tokens = model.tokens("w0 漢")
    assert tokens[-1] == UNKNOWN != tokens[0] and model.score(["w0 漢"])[2] == tokens.count(UNKNOWN)


def test_a_list_is_needed(text, tmp_path):
    with pytest.raises(UserError, match="name the list's directory with --subword"):
        build([text], 2, tmp_path / "lm", Normaliser(), kenlm="none", closed=True)
