import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from shlex import split

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.cli import main
from lmtools.corpus import ALIGNMENT, MAGIC, Corpus, binarise, read_header
from lmtools.errors import UserError
from lmtools.subword import SUBWORDS, UNK, train
from lmtools.text import NORMALISERS, Normaliser, blocks

LINES = ["The blue finch sings.", "", "a", "...", "blue 漢 dawn", "  finch  "]


@pytest.fixture(scope="module")
def subwords(tmp_path_factory):
    folder = tmp_path_factory.mktemp("subword")
    text = ["the blue finch sings at dawn", "a dawn song"] * 3
    return {
        scheme: train(scheme, text, 40, NORMALISERS["librispeech"], folder / scheme)
        for scheme in SUBWORDS
    }, folder


@pytest.fixture
def word(subwords):
    return subwords[0]["word"]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", SUBWORDS)
def test_memory_map_equals_list(subwords, tmp_path, scheme):
    subword = subwords[0][scheme]
    corpus = binarise([write(tmp_path / "t", LINES)], subword, tmp_path / "t.bin")
    expected = [ids for ids in map(subword.encode, LINES) if ids]
    assert (
        [sentence.tolist() for sentence in corpus]
        == [corpus[i].tolist() for i in range(len(corpus))]
        == expected
    )
    assert corpus.lengths.tolist() == [len(ids) for ids in expected]
    assert corpus.tokens == len(corpus.ids) == sum(map(len, expected))
    assert [sentence.tolist() for sentence in corpus.batch([2, 0, 2])] == [
        expected[2],
        expected[0],
        expected[2],
    ]
    assert corpus[-1].tolist() == corpus[np.int64(3)].tolist() == expected[3]
    header = corpus.header
    assert (header.sentences, header.empty, header.longest) == (4, 2, max(map(len, expected)))
    assert header.unknown == sum(ids.count(UNK) for ids in expected)
    assert corpus.vocabulary_hash == subword.hash == corpus.subword.hash
    assert corpus.subword.encode("Blue dawn!") == subword.encode("Blue dawn!")
    for outside in (4, -5):
        with pytest.raises(IndexError):
            corpus[outside]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("abcdefgh ", max_size=20), min_size=1, max_size=30), st.integers(1, 40))
def test_blocks_change_nothing(tmp_path_factory, subwords, lines, size):
    subword = subwords[0]["char"]
    folder = tmp_path_factory.mktemp("blocks")
    source = write(folder / "t", [*lines, "a"])
    whole = binarise([source], subword, folder / "whole.bin").path.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SIZE", size)
        assert binarise([source], subword, folder / "parts.bin").path.read_bytes() == whole


@pytest.mark.parametrize("scheme", SUBWORDS)
def test_processes_change_no_byte(subwords, tmp_path, monkeypatch, scheme):
    monkeypatch.setattr(blocks, "SIZE", 1000)
    source = write(
        tmp_path / "t", [line for n in range(200) for line in (*LINES, f"id-{n} sings a song")]
    )
    made = [
        binarise(
            [source], subwords[0][scheme], tmp_path / "t.bin", kaldi=True, nj=nj
        ).path.read_bytes()
        for nj in (1, 2)
    ]
    assert made[0] == made[1]


def test_read_by_the_layout_alone(word, tmp_path):
    """The file as its description says, read with json and numpy."""
    path = binarise([write(tmp_path / "t", LINES)], word, tmp_path / "t.bin").path
    data = path.read_bytes()
    assert data.startswith(MAGIC)
    end = data.index(b"\n", len(MAGIC)) + 1
    header = json.loads(data[len(MAGIC) : end])
    assert end % ALIGNMENT == 0
    assert header["sources"] == [str(tmp_path / "t")]
    start = end + -(-header["model"] // ALIGNMENT) * ALIGNMENT
    assert data[end : end + header["model"]] == word.content
    offsets = np.frombuffer(data, "<i8", header["sentences"] + 1, start)
    ids = np.frombuffer(data, "<u2", header["tokens"], start + offsets.nbytes)
    assert start + offsets.nbytes + ids.nbytes == len(data)
    assert offsets.tolist() == [0, 4, 5, 8, 9]
    assert (
        " ".join(word.vocabulary[i] for i in ids) == "the blue finch sings a blue <unk> dawn finch"
    )


def test_wide_ids_from_65537_pieces(tmp_path):
    for size, dtype in ((1 << 16, "<u2"), ((1 << 16) + 1, "<u4")):
        subword = train(
            "word", [f"w{n}" for n in range(size - 5)], None, Normaliser(), tmp_path / "w"
        )
        last = subword.vocabulary[-1]
        corpus = binarise([write(tmp_path / "t", [last])], subword, tmp_path / "t.bin")
        assert corpus.header.dtype == corpus.ids.dtype.str == dtype
        assert corpus[0].tolist() == [size - 1]


def test_many_sources_of_any_compression(word, tmp_path, monkeypatch):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"the blue finch\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a dawn\n")))
    corpus = binarise(
        [tmp_path / "a.gz", "-", write(tmp_path / "b", ["song"])], word, tmp_path / "t.bin"
    )
    assert [word.decode(sentence) for sentence in corpus] == ["the blue finch", "a dawn", "song"]


def test_kaldi_ids_are_dropped(word, tmp_path):
    source = write(tmp_path / "text", ["utt-1 the blue finch", "utt-2\ta\tdawn", "utt-3", "utt-4 "])
    corpus = binarise([source], word, tmp_path / "t.bin", kaldi=True)
    assert [word.decode(sentence) for sentence in corpus] == ["the blue finch", "a dawn"]
    assert corpus.header.empty == 2


def test_one_endless_line(subwords, tmp_path):
    line = "blue dawn " * 100_000
    corpus = binarise([write(tmp_path / "t", [line])], subwords[0]["bpe"], tmp_path / "t.bin")
    assert corpus[0].tolist() == subwords[0]["bpe"].encode(line)


def test_foreign_vocabulary_is_refused(subwords, tmp_path):
    corpus = binarise([write(tmp_path / "t", LINES)], subwords[0]["word"], tmp_path / "t.bin")
    assert corpus.check(subwords[0]["word"]) is corpus
    with pytest.raises(
        UserError,
        match=r"t\.bin: made with another word model of .*; make it again with lmtools corpus",
    ):
        corpus.check(subwords[0]["char"])


def test_no_sentence(word, tmp_path):
    with pytest.raises(UserError, match="no sentence in the text"):
        binarise([write(tmp_path / "t", ["", "!"])], word, tmp_path / "t.bin")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda data: b"", "not a binarised corpus"),
        (lambda data: b"some text\n" * 50, "not a binarised corpus"),
        (lambda data: data[:-1], "is torn"),
        (lambda data: data + b"\0", "is torn"),
        (lambda data: data[: len(MAGIC) + 30], "torn in its header"),
        (lambda data: data.replace(b'"<u2"', b'"<u9"'), "its seal does not fit"),
        (lambda data: data.replace(b'"tokens"', b'"tokes_"'), "its seal does not fit"),
        (lambda data: data.replace(b'"seal"', b'"sea1"'), "unknown setting 'sea1'"),
        (lambda data: data.replace(b'"seal": "', b'"version": "'), "torn in its header"),
    ],
)
def test_foreign_and_torn_files(word, tmp_path, how, message):
    path = binarise([write(tmp_path / "t", LINES)], word, tmp_path / "t.bin").path
    path.write_bytes(how(path.read_bytes()))
    with pytest.raises(UserError, match=message):
        Corpus.open(path)


def test_changed_model_inside_is_found(word, tmp_path):
    path = binarise([write(tmp_path / "t", LINES)], word, tmp_path / "t.bin").path
    path.write_bytes(path.read_bytes().replace(b"blue\t", b"glue\t"))
    with pytest.raises(UserError, match=r"t\.bin: the subword model or its normaliser was changed"):
        Corpus.open(path).subword  # noqa: B018


def test_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"no\.bin: cannot read: No such file"):
        read_header(tmp_path / "no.bin")


def test_interrupted_reading_keeps_the_old_file(word, tmp_path):
    out = binarise([write(tmp_path / "t", LINES)], word, tmp_path / "t.bin").path
    before = out.read_bytes()
    bad = tmp_path / "bad"
    bad.write_bytes(b"the blue\n\xff\n")
    with pytest.raises(UserError, match="bad:2: not UTF-8"):
        binarise([bad], word, out)
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "t", "t.bin"]


def test_killed_while_writing_keeps_the_old_file(subwords, tmp_path):
    """SIGKILL while text still comes in through a pipe: the old corpus stays whole, and the next
    run works.
    """
    folder = subwords[1] / "word"
    out = binarise([write(tmp_path / "t", LINES)], subwords[0]["word"], tmp_path / "t.bin").path
    before = out.read_bytes()
    command = [
        sys.executable,
        *split("-m lmtools corpus --text - --subword"),
        str(folder),
        "--out",
        str(out),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        begun = False
        for _ in range(2000):
            child.stdin.write(b"the blue finch sings\n" * 1000)
            child.stdin.flush()
            if begun := bool(list(tmp_path.glob(".t.bin.*"))):
                break
            time.sleep(0.01)
        child.kill()
    assert begun
    assert child.returncode == -signal.SIGKILL
    assert out.read_bytes() == before
    assert (
        main(["corpus", "--text", str(tmp_path / "t"), "--subword", str(folder), "--out", str(out)])
        == 0
    )
    assert out.read_bytes() == before


def test_memory_is_bounded(subwords, tmp_path, monkeypatch):
    """Three times the text needs no more memory at its peak, which is far below the size of the
    result.
    """
    monkeypatch.setattr(blocks, "SIZE", 4000)
    peaks = []
    for repeats in (20_000, 60_000):
        source = write(tmp_path / "t", ["the blue finch sings at dawn a song"] * repeats)
        tracemalloc.start()
        binarise([source], subwords[0]["char"], tmp_path / "t.bin")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 10_000
    assert peaks[1] < 0.5 * os.path.getsize(tmp_path / "t.bin")


def test_verb(subwords, tmp_path, capsys):
    source = write(tmp_path / "t", LINES)
    status = main(
        [
            "corpus",
            "--text",
            str(source),
            str(source),
            "--subword",
            str(subwords[1] / "word"),
            "--out",
            str(tmp_path / "t.bin"),
        ]
    )
    assert status == 0
    assert (
        capsys.readouterr().out
        == f"{tmp_path}/t.bin: 8 sentences, 18 tokens (11.11% unknown), longest 4, 4 empty lines"
        " skipped\n"
    )


@pytest.mark.parametrize("part", ["model", "offsets", "ids"])
def test_a_flipped_bit_in_any_part_is_found(word, tmp_path, part):
    corpus = binarise([write(tmp_path / "t", LINES)], word, tmp_path / "t.bin")
    whole, data = corpus.digest(), bytearray(corpus.path.read_bytes())
    found = data.rindex(getattr(corpus, part).tobytes())
    data[found] ^= 0x40
    corpus.path.write_bytes(data)
    with pytest.raises(
        UserError, match=r"t\.bin: damaged \(its content is not what was written\); write it again"
    ):
        Corpus.open(corpus.path).digest()
    data[found] ^= 0x40
    corpus.path.write_bytes(data)
    assert Corpus.open(corpus.path).digest() == whole


def test_a_corpus_of_an_older_version_is_taken_with_a_warning(word, tmp_path, capsys):
    corpus = binarise([write(tmp_path / "t", LINES)], word, tmp_path / "t.bin")
    line, _, rest = corpus.path.read_bytes()[len(MAGIC) :].partition(b"\n")
    tree = {
        name: value for name, value in json.loads(line).items() if name not in ("seal", "content")
    }
    head = json.dumps(tree).encode()
    rest = bytearray(rest)
    (tmp_path / "old.bin").write_bytes(MAGIC + head.ljust(len(line)) + b"\n" + rest)
    old = Corpus.open(tmp_path / "old.bin")
    assert [one.tolist() for one in old] == [
        one.tolist() for one in corpus
    ] and old.digest() != corpus.digest()
    warning = (
        "has no seal (an older version wrote it, or it was edited), so that damage would not be"
        " found"
    )
    assert capsys.readouterr().err == f"{old.path}: {warning}\n"
    rest[-1] = 0xFF
    (tmp_path / "old.bin").write_bytes(MAGIC + head.ljust(len(line)) + b"\n" + rest)
    with pytest.raises(UserError, match=r"old\.bin: damaged \(its offsets or ids lie outside"):
        Corpus.open(tmp_path / "old.bin").digest()
