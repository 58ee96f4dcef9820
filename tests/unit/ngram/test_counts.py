from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.ngram import NgramModel, arpa, build, counts
from lmtools.ngram.counts import count, index
from lmtools.ngram.sentences import SYMBOLS, TokenisedText
from lmtools.text import Normaliser
from lmtools.text.subword import train

corpora = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=12)


def spelled(grams, vocabulary, n):
    """The words of each n-gram, by walking down its suffixes."""
    ids = arpa.spell(grams[:n], 0, len(grams[n - 1]))
    return [tuple(vocabulary[i] for i in row) for row in ids]


@settings(max_examples=60, deadline=None)
@given(corpora, st.sampled_from([1, 500, 1 << 30]), st.sampled_from([2, 4, 63]))
def test_every_ngram_with_its_count_and_suffix(corpus, memory, key):
    """However little memory there is, and however few words an integer holds."""
    text = index(corpus)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "KEY", key)
        grams = count(text, 4, memory)
    padded = [("<s>", *sentence, "</s>") for sentence in corpus]
    found = [spelled(grams, text.vocabulary, n) for n in range(1, 5)]
    for n, gram in enumerate(grams[1:], 2):
        occurrences, left = Counter(), defaultdict(set)
        for sentence in padded:
            for i in range(len(sentence) - n + 1):
                words = sentence[i : i + n]
                occurrences[words] += 1
                if i:
                    left[words].add(sentence[i - 1])
        names = found[n - 1]
        assert sorted(names) == sorted(occurrences)
        expected = [
            occurrences[name] if n == 4 or name[0] == "<s>" else len(left[name]) for name in names
        ]
        assert gram.count.read().tolist() == expected
        assert [found[n - 2][i] for i in gram.suffix.read()] == [name[1:] for name in names]
        numbers = [tuple(text.vocabulary.index(word) for word in name[::-1]) for name in names]
        assert numbers == sorted(numbers), "suffix order"


def test_unigrams_count_everything_but_the_beginning():
    text = index([["a", "b", "a"], ["b"]])
    assert text.vocabulary == [*SYMBOLS, "a", "b"]
    (words,) = count(text, 1, 1 << 20)
    assert words.count.read().tolist() == text.occurrences.tolist() == [0, 0, 2, 2, 2]


def test_sentences_skip_empty_lines_and_reserved_symbols(tmp_path):
    path = tmp_path / "text"
    path.write_text("a <s> b\n\n  \n<unk>\n</s> <UNK> c\n")
    sentences = TokenisedText([path, path], str.split)
    assert list(sentences) == [["a", "b"], ["c"]] * 2
    assert (sentences.sentences, sentences.tokens, sentences.reserved) == (4, 6, 8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n \n<unk>\n", ": no sentence in the text; give"),
        (b"", ": no sentence in the text; give"),
        (b"fine\na\0b\n", ":2: holds a NUL byte"),
        (b"fine\n\xff\n", ":2: not UTF-8"),
    ],
)
def test_bad_text_is_refused_with_its_place(tmp_path, content, message):
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        list(TokenisedText([path], str.split))
    assert str(caught.value).startswith(f"{path}{message}")


def count_lines(lines, order):
    """Counts as ngram-count -write has them, words by appearance."""
    counts = Counter()
    for words in (["<s>", *line.split(), "</s>"] for line in lines if line.split()):
        for n in range(1, order + 1):
            counts.update(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    rows = sorted(counts, key=len, reverse=True)
    return [f"{' '.join(row)}\t{counts[row]}\n" for row in rows]


@pytest.fixture
def counted(lines, tmp_path):
    """Two files with the counts of `lines`, some of them in two parts."""
    rows = count_lines([line.lower() for line in lines], 4)
    first, *rest = rows
    words, number = first.rsplit("\t", 1)
    parts = [f"{words} {int(number) + 4}\n", *rest[1::2]], [f"{words}\t0\n", *rest[::2]]
    for name, own in zip("ab", parts, strict=True):
        (tmp_path / name).write_text("".join(own), encoding="utf-8")
    (tmp_path / "whole").write_text("".join(rows), encoding="utf-8")
    return tmp_path


def test_counts_make_the_model_of_their_text(counted, directory, tmp_path):
    lower = Normaliser(case="lower")
    made = build([counted / "whole"], 3, tmp_path / "lm", lower, kenlm="none", counted=True)
    assert (tmp_path / "lm/lm.arpa").read_bytes() == (directory / "lm.arpa").read_bytes()
    whole = (directory / "config.yaml").read_text()
    assert f"sentences: {made.sentences}\n" in whole and f"tokens: {made.tokens}\n" in whole


def test_counts_of_several_files_are_summed(counted, tmp_path):
    """The first n-gram has four more than in the text."""
    files = [counted / "a", counted / "b"]
    build(files, 4, tmp_path / "two", Normaliser(), kenlm="none", counted=True)
    rows = (counted / "whole").read_text(encoding="utf-8").splitlines()
    words, number = rows[0].rsplit("\t", 1)
    (tmp_path / "more").write_text("\n".join([f"{words}\t{int(number) + 4}", *rows[1:]]), "utf-8")
    build([tmp_path / "more"], 4, tmp_path / "one", Normaliser(), kenlm="none", counted=True)
    assert sorted((tmp_path / "two/lm.arpa").read_text().splitlines()) == sorted(
        (tmp_path / "one/lm.arpa").read_text().splitlines()
    )


def test_a_closed_vocabulary_joins_the_counts_of_what_it_lacks(text, lines, tmp_path):
    train("word", lines, 9, Normaliser(), tmp_path / "words")
    (tmp_path / "counts").write_text("".join(count_lines(lines, 2)), encoding="utf-8")
    made = []
    for name, option in (("a", ("--text", text)), ("b", ("--counts", tmp_path / "counts"))):
        options = ("--order", 2, "--subword", tmp_path / "words", "--unk", "--kenlm", "none")
        command = ["ngram", *option, *options, "--out", tmp_path / name]
        assert main(list(map(str, command))) in (0, None)
        made.append(sorted((tmp_path / name / "lm.arpa").read_text().splitlines()))
    assert made[0] == made[1]


WRONG = {
    "a b\n": "is no n-gram with a whole number",
    "5\n": "is no n-gram with a whole number",
    "a ²\n": "is no n-gram with a whole number",
    "a １２\n": "is no n-gram with a whole number",
    f"a {5000 * '9'}\n": "counts go to 1,000,000,000,000,000",
    "a 18446744073709551615\n": "counts go to 1,000,000,000,000,000",
    3 * f"a {15 * '9'}\n": "the counts of 1 words go beyond 1,000,000,000,000,000 together",
    "a <s> 3\n": "goes on across the end",
    "a 2\n</s> 2\n<s> a 2\na b 2\na </s> 2\n<s> a b 2\n": "`a b` is counted, b is not",
    "a 2\nb 1\n</s> 2\n<s> a 2\na </s> 2\n<s> a b 1\n": "`<s> a b` is counted, its beginning or",
    "a 2\n</s> 2\n": "no counts of n-grams of 2 words",
    "a 2\na a 2\na a a 1\n": "no counts of </s>",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_counts(text, tmp_path):
    (tmp_path / "counts").write_text(text)
    with pytest.raises(UserError, match="counts") as error:
        build([tmp_path / "counts"], 3, tmp_path / "lm", Normaliser(), kenlm="none", counted=True)
    assert WRONG[text] in str(error.value) and not (tmp_path / "lm/config.yaml").exists()


def test_counted_words_with_other_blanks_stay_whole(tmp_path):
    """As SRILM parts them; the model says so, so that texts are parted alike."""
    lines = ["oui\u00a0! hello", "hello oui\u00a0!"]
    rows = Counter()
    for words in (["<s>", *line.split(" "), "</s>"] for line in lines):
        for n in (1, 2):
            rows.update(" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    (tmp_path / "counts").write_text("".join(f"{row}\t{n}\n" for row, n in rows.items()))
    build([tmp_path / "counts"], 2, tmp_path / "lm", Normaliser(), kenlm="none", counted=True)
    model = NgramModel.load(tmp_path / "lm")
    assert model.tokens(lines[0]) == ["oui\u00a0!", "hello"] and model.score(lines)[2].sum() == 0


def test_text_or_counts(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["ngram", "--text", "a", "--counts", "b", "--order", "2", "--out", str(tmp_path)])
    assert end.value.code == 2 and "give one of them" in capsys.readouterr().err
