"""Corpora of pairs: a text and what it is the translation of."""

import json
from shlex import split

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.text import Normaliser, blocks
from lmtools.text.corpus import MAGIC, Corpus, binarise, binarise_pairs
from lmtools.text.subword import EOS, train

SOURCES = ["a b", "", "c", "b a c"]
TARGETS = ["x", "", "y x", "x y z z"]


@pytest.fixture
def home(tmp_path):
    """A directory with a vocabulary (sw) of both sides, the sides, and a text a line longer."""
    train("word", [*SOURCES, *TARGETS], None, Normaliser(), tmp_path / "sw")
    for name, lines in (("s", SOURCES), ("t", TARGETS), ("long", [*TARGETS, "x"])):
        write(tmp_path / name, lines)
    return tmp_path


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def corpus(home, *more, text="t", source="s") -> int:
    """The exit status of lmtools corpus of two files of `home`."""
    command = f"corpus --text {home / text} --source {home / source} --subword {home / 'sw'} --out"
    return main([*split(command), str(home / "p.bin"), *more])


def test_a_pair_is_one_sequence(home, capsys):
    assert corpus(home) == 0
    out = capsys.readouterr().out
    assert out.endswith(
        "p.bin: 3 pairs, 16 tokens (0.00% unknown), longest 8, 1 empty lines skipped\n"
    )
    made = Corpus.open(home / "p.bin")
    encode = made.subword.encode
    expected = [
        [*encode(source), EOS, *encode(target)]
        for source, target in zip(SOURCES, TARGETS, strict=True)
        if source
    ]
    assert [pair.tolist() for pair in made] == expected
    assert made.source_lengths.tolist() == [2, 1, 3]
    assert made.header.pairs and made.header.sources == [str(home / "t"), str(home / "s")]
    assert len(made.digest()) == 64


def test_processes_and_blocks_change_no_byte(home, monkeypatch):
    text, source = write(home / "t", TARGETS * 50), write(home / "s", SOURCES * 50)
    made = set()
    for size, nj in ((10_000, 1), (7, 1), (7, 2)):
        monkeypatch.setattr(blocks, "PAIRS", size)
        assert corpus(home, "--nj", str(nj)) == 0
        made.add((home / "p.bin").read_bytes())
    assert len(made) == 1
    both = binarise_pairs([text] * 2, [source] * 2, Corpus.open(home / "p.bin").subword, home / "q")
    assert len(both) == 300 and both.header.empty == 100


def test_a_plain_corpus_says_what_it_said_before_there_were_pairs(home):
    vocabulary = train("word", TARGETS, None, Normaliser(), home / "w")
    data = binarise([home / "t"], vocabulary, home / "t.bin").path.read_bytes()
    assert "pairs" not in json.loads(data[len(MAGIC) : data.index(b"\n", len(MAGIC))])
    assert not Corpus.open(home / "t.bin").header.pairs


@pytest.mark.parametrize(
    ("sides", "more", "message"),
    [
        ({"text": "long"}, "", "s: ends after 4 lines, {0}/long has more"),
        ({"source": "long"}, "", "t: ends after 4 lines, {0}/long has more"),
        ({"text": "gap"}, "", "gap:3: empty after normalisation, and line 3 of {0}/s is not"),
        ({"source": "gap"}, "", "gap:3: empty after normalisation, and line 3 of {0}/t is not"),
        ({}, "--shard-size 1M", "--shard-size: a corpus of pairs is one file"),
        ({}, "--text {0}/t", "--source: 1 texts for 2 of --text"),
        ({}, "--kaldi", "s:1: not the utterance of {0}/t:1 ('a', 'x')"),
        ({"text": "none", "source": "none"}, "", "none: no sentence in the text"),
        ({"source": "missing"}, "", "missing: cannot read"),
    ],
)
def test_what_is_not_aligned_is_refused(home, capsys, sides, more, message):
    write(home / "gap", ["x", "", "", "y"])
    write(home / "none", ["", ""])
    assert corpus(home, *split(more.format(home)), **sides) == 1
    err = capsys.readouterr().err
    assert message.format(home) in err and err.count("\n") == 1, err
    assert not (home / "p.bin").exists()


@pytest.mark.parametrize("size", [2, 4])
def test_a_longer_side_is_found_at_the_end_of_a_block_too(home, monkeypatch, size):
    monkeypatch.setattr(blocks, "PAIRS", size)
    with pytest.raises(UserError, match=r"s: ends after 4 lines, .*long has more"):
        list(blocks.read_pairs([home / "long"], [home / "s"]))


def test_ids_of_kaldi_text_are_dropped_from_both(home):
    write(home / "s", ["u1 a b", "u2 c"])
    write(home / "t", ["u1 x", "u2 y"])
    assert corpus(home, "--kaldi") == 0
    made = Corpus.open(home / "p.bin")
    assert [made.subword.decode(pair) for pair in made] == ["a b x", "c y"]


def test_sequences_that_are_no_pairs_are_damage(home):
    made = binarise_pairs([home / "t"], [home / "s"], train_again(home), home / "p.bin")
    ids = np.array(made.ids)
    for place in (0, 2):  # a second end in a pair; none
        changed = ids.copy()
        changed[place] = EOS if place == 0 else 7
        broken = type(made)(made.path, made.header, made.model, made.offsets, changed)
        with pytest.raises(UserError, match=r"p\.bin: damaged \(holds sequences that are no pairs"):
            broken.source_lengths  # noqa: B018


def train_again(home):
    return train("word", [*SOURCES, *TARGETS], None, Normaliser(), home / "sw")
