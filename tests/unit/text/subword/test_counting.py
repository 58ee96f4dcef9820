"""Counting in bounded memory and by several processes: the counts of one Counter over all text."""

import random
from collections import Counter
from shlex import split

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools import UserError
from lmtools.cli import main
from lmtools.text import NORMALISERS, Normaliser, blocks
from lmtools.text.normaliser import CHOICES
from lmtools.text.subword import lists, load_subword, train
from lmtools.text.subword.lists import Char, Normalised, TokenCounts, Word, sum_counts

ITEMS = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\t\n"), min_size=1, max_size=3
)
ANY = st.text(
    st.one_of(st.sampled_from("abΣσΑAiİ '’`´▁-.\u00a0\u0301\u2000\x1c\x85ﬁ①"), st.characters()),
    max_size=12,
)
NORMALISER = st.builds(
    Normaliser, **{name: st.sampled_from(values) for name, values in CHOICES.items()}
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.dictionaries(ITEMS, st.integers(1, 9), max_size=8), max_size=8), st.integers(0, 9)
)
def test_spilling_changes_nothing(parts, room):
    made = sum_counts(parts, room)
    expected = sum(map(Counter, parts), Counter())
    for _ in range(2):
        pairs = list(made)
        assert len(pairs) == len(expected) and dict(pairs) == expected
    assert made.total == expected.total()


def test_only_so_many_items_are_in_memory():
    made = TokenCounts(room=10)
    for n in range(1000):
        made.add({f"w{n}": 1, "often": 2})
        assert len(made.counts) <= 10
    assert len(made.runs) > 50
    assert dict(made) == {**{f"w{n}": 1 for n in range(1000)}, "often": 2000}


@settings(max_examples=300, deadline=None)
@given(NORMALISER, ANY)
def test_normalisers_take_one_word_at_a_time(normaliser, text):
    """What Word's counting and its ids rest on."""
    known = Normalised(normaliser)
    assert [word for token in text.split() for word in known[token]] == normaliser(text).split()


def text_of(tmp_path, lines, **options):
    path = tmp_path / "text"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="", **options)
    return path


LINES = [
    "The blue, blue finch’s song", "", " -- ", "naïve ΣΑΣ <unk> <s>", "a\tb\r", "▁marked▁ ´x´",
    "don't stop", "漢 字",
]  # fmt: skip


@pytest.mark.parametrize("normaliser", NORMALISERS.values(), ids=NORMALISERS)
@pytest.mark.parametrize("kind", [Word, Char], ids=lambda kind: kind.scheme)
def test_files_in_blocks_are_counted_as_lines_are(tmp_path, monkeypatch, kind, normaliser):
    draw = random.Random(3)
    lines = [draw.choice(LINES) for _ in range(300)]
    path = text_of(tmp_path, lines)
    expected = train(kind.scheme, lines, None, normaliser, tmp_path / "lines", min_count=2)
    monkeypatch.setattr(blocks, "SIZE", 50)
    # room for so few: everything goes over the disk
    monkeypatch.setattr(lists.sum_counts, "__defaults__", (3,))
    made = kind.learn_files([path], normaliser, None, 2)
    assert (made.content, made.left_out) == (expected.content, expected.left_out)


@pytest.mark.parametrize("scheme", ["word", "char"])
def test_processes_change_no_byte(tmp_path, monkeypatch, scheme, capsys):
    monkeypatch.setattr(blocks, "SIZE", 2000)
    path = text_of(tmp_path, [f"w{n % 97} w{n % 31} é{n}" for n in range(1000)])
    for nj in (1, 2):
        assert (
            main(
                [
                    *split(f"subword --text {path} --type"),
                    scheme,
                    *split(f"--nj {nj} --out"),
                    str(tmp_path / str(nj)),
                ]
            )
            == 0
        )
    for file in ("vocab.txt", "subword.yaml", "normaliser.yaml"):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()
    assert load_subword(tmp_path / "2").counts.sum() == (
        3000 if scheme == "word" else sum(map(len, path.read_text().splitlines()))
    )


def test_a_line_that_is_no_text_is_named(tmp_path):
    (tmp_path / "bad").write_bytes(b"a b\n" * 10 + b"\xff\n")
    with pytest.raises(UserError, match="bad:11: not UTF-8"):
        Word.learn_files([tmp_path / "bad"], Normaliser())
    with pytest.raises(UserError, match="no room beside its 5 specials"):
        Word.learn_files([tmp_path / "bad"], Normaliser(), 5)
