import gzip
import io
import json
import os
import sys
import tracemalloc
from shlex import split

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools import UserError
from lmtools.base.seal import add_seal
from lmtools.cli import main
from lmtools.text import NORMALISERS, Normaliser, blocks
from lmtools.text.corpus import (
    ALIGNMENT,
    INDEX,
    MAGIC,
    Corpus,
    binarise,
    binarise_shards,
    read_header,
)
from lmtools.text.normaliser import parse_normaliser
from lmtools.text.subword import SUBWORDS, UNK, train

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


@pytest.mark.parametrize("spec", ["librispeech", "librispeech:language=tr", "whisper-english"])
def test_the_header_has_the_normaliser(tmp_path, spec):
    """Later settings stand in it only where used: shards keep their names."""
    normaliser = parse_normaliser(spec)
    subword = train("word", ["a dawn twenty one"], None, normaliser, tmp_path / "sw")
    binarise([write(tmp_path / "t", LINES)], subword, tmp_path / "t.bin")
    said = json.loads((tmp_path / "t.bin").read_bytes().split(b"\n")[1])["normaliser"]
    more = {"language", "whisper"} & said.keys()
    assert more == {setting for setting in ("language", "whisper") if setting in spec}
    assert Corpus.open(tmp_path / "t.bin").subword.normaliser == normaliser
    made = binarise_shards([tmp_path / "t"], subword, tmp_path / "s.bin", 1 << 20)
    assert made.digest() and made.subword.normaliser == normaliser


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


def test_memory_is_bounded(subwords, tmp_path, monkeypatch):
    """Three times the text needs no more memory, far below the result's size."""
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
            *split(f"corpus --text {source} {source} --subword"),
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


def test_the_same_text_written_elsewhere_by_another_version_is_the_same(
    word, tmp_path, monkeypatch
):
    """So that an update of lmtools does not train a finished model again."""
    corpus = binarise([write(tmp_path / "t", LINES)], word, tmp_path / "t.bin")
    shards = binarise_shards([tmp_path / "t"], word, tmp_path / "s.bin", 20)
    monkeypatch.setattr(sys.modules["lmtools.text.corpus.binarise"], "__version__", "99.0")
    (tmp_path / "moved").mkdir()
    text = write(tmp_path / "moved/u", LINES)
    again = binarise([text], word, tmp_path / "moved/t.bin")
    assert again.header != corpus.header and again.digest() == corpus.digest()
    moved = binarise_shards([text], word, tmp_path / "moved/s.bin", 20)
    assert moved.header.shards != shards.header.shards and moved.digest() == shards.digest()
    other = binarise([write(text, LINES[:-1])], word, tmp_path / "moved/o.bin")
    assert len({corpus.digest(), shards.digest(), other.digest()}) == 3


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
    assert [one.tolist() for one in old] == [one.tolist() for one in corpus]
    assert old.digest() != corpus.digest()
    warning = (
        "has no seal (an older version wrote it, or it was edited), so that damage would not be"
        " found"
    )
    assert capsys.readouterr().err == f"{old.path}: {warning}\n"
    rest[-1] = 0xFF
    (tmp_path / "old.bin").write_bytes(MAGIC + head.ljust(len(line)) + b"\n" + rest)
    with pytest.raises(UserError, match=r"old\.bin: damaged \(its offsets or ids lie outside"):
        Corpus.open(tmp_path / "old.bin").digest()


TEXT = [line for n in range(60) for line in (*LINES, f"a song {n} at dawn")]


def tree(folder):
    """The files below a directory, with their bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file()}  # fmt: skip


@pytest.mark.parametrize("scheme", ["word", "bpe"])
@pytest.mark.parametrize("kaldi", [False, True])
def test_shards_hold_the_sentences_of_the_file(subwords, tmp_path, scheme, kaldi):
    """Of two texts, one of them compressed, by one process and by two."""
    subword = subwords[0][scheme]
    sources = [write(tmp_path / "t", TEXT), tmp_path / "u.gz"]
    sources[1].write_bytes(gzip.compress(sources[0].read_bytes()))
    whole = binarise(sources, subword, tmp_path / "whole.bin", kaldi=kaldi)
    made = []
    for nj in (1, 2):
        (folder := tmp_path / f"nj{nj}").mkdir()
        corpus = binarise_shards(sources, subword, folder / "t.bin", 1000, kaldi=kaldi, nj=nj)
        made.append(tree(folder))
    assert made[0] == made[1] and len(made[0]) == len(corpus.shards) + 1 > 4
    found = [sentence.tolist() for shard in corpus.shards for sentence in shard]
    assert found == [sentence.tolist() for sentence in whole]
    for name in ("sentences", "tokens", "unknown", "empty", "longest", "dtype", "sources"):
        assert getattr(corpus.header, name) == getattr(whole.header, name)
    assert len(corpus) == len(whole) and corpus.tokens == whole.tokens
    assert corpus.subword.hash == subword.hash and corpus.check(subword) is corpus
    assert all(shard.header.sources == [] for shard in corpus.shards)
    assert corpus.digest() == Corpus.open(tmp_path / "nj1" / "t.bin").digest() != whole.digest()


def test_links_where_shards_belong(word, tmp_path):
    """None is written through."""
    source, out = write(tmp_path / "t", ["a song", "dawn"]), tmp_path / "t.bin"
    kept, shards = write(tmp_path / "kept", ["kept"]), tmp_path / "t.bin.shards"
    shards.mkdir()
    (shards / "0.part").symlink_to(kept)
    assert len(binarise_shards([source], word, out, 500)) == 2
    assert kept.read_text() == "kept\n" and not (shards / "0.part").is_symlink()
    shards.rename(tmp_path / "elsewhere")
    shards.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="shards: a link stands where the shards belong; remove"):
        binarise_shards([source], word, out, 500)


def test_parts_without_a_sentence_are_no_shards(word, tmp_path):
    source = write(tmp_path / "t", ["a song", *["!"] * 2000, "dawn"])
    corpus = binarise_shards([source], word, tmp_path / "t.bin", 500)
    assert [len(shard) for shard in corpus.shards] == [1, 1]
    assert corpus.header.empty == 2000
    with pytest.raises(UserError, match="t: no sentence in the text"):
        binarise_shards([write(tmp_path / "t", ["!"] * 999)], word, tmp_path / "t.bin", 500)
    assert len(Corpus.open(tmp_path / "t.bin")) == 2


def test_a_failed_run_keeps_the_shards_of_the_run_before(word, tmp_path):
    """And the next one takes away what neither needs, nothing else."""
    source, out = write(tmp_path / "t", TEXT), tmp_path / "t.bin"
    digest = binarise_shards([source], word, out, 1000).digest()
    folder = tmp_path / "t.bin.shards"
    (folder / "mine.bin").write_bytes(b"")
    bad = tmp_path / "bad"
    bad.write_bytes(b"the blue\n" * 500 + b"\xff\n")
    with pytest.raises(UserError, match="bad:501: not UTF-8"):
        binarise_shards([bad], word, out, 1000)
    assert Corpus.open(out).digest() == digest
    corpus = binarise_shards([write(source, TEXT[:-1])], word, out, 1000)
    assert sorted(os.listdir(folder)) == sorted([*corpus.header.shards, "mine.bin"])
    assert len(corpus) == sum(map(len, corpus.shards))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda tree: tree["shards"].pop(), "its seal does not fit"),
        (lambda tree: tree.pop("seal"), "torn in its header"),
        (lambda tree: tree["shards"].__setitem__(0, "../../t.bin"), "names no shards"),
        (lambda tree: tree["shards"].__setitem__(0, tree["shards"][1]), "not those that were"),
        (lambda tree: tree["shards"].clear(), "names no shards"),
        (lambda tree: tree["shards"].__setitem__(0, "0" * 32 + ".bin"), "cannot read: No such"),
    ],
)
def test_a_changed_index_is_found(word, tmp_path, how, message):
    out = tmp_path / "t.bin"
    binarise_shards([write(tmp_path / "t", TEXT)], word, out, 1000)
    data = out.read_bytes()
    assert data.startswith(INDEX)
    said = json.loads(data[len(INDEX) :])
    how(said)
    if "seal" in said and "does not fit" not in message:
        said = add_seal(said)
    out.write_bytes(INDEX + json.dumps(said).encode() + b"\n")
    with pytest.raises(UserError, match=message):
        Corpus.open(out)


def test_a_changed_shard_is_found(word, tmp_path):
    corpus = binarise_shards([write(tmp_path / "t", TEXT)], word, tmp_path / "t.bin", 1000)
    path = corpus.shards[1].path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=rf"{path.name}: damaged \(its content"):
        Corpus.open(tmp_path / "t.bin").digest()
    path.write_bytes(corpus.shards[0].path.read_bytes())
    with pytest.raises(UserError, match=r"t\.bin: its shards are not those that were written"):
        Corpus.open(tmp_path / "t.bin")


def test_verb_writes_shards(subwords, tmp_path, capsys):
    source = write(tmp_path / "t", TEXT)
    command = split(f"corpus --text {source} --subword {subwords[1] / 'word'} --shard-size 1K")
    assert main([*command, "--out", str(tmp_path / "t.bin"), "--nj", "2"]) == 0
    shards = Corpus.open(tmp_path / "t.bin").shards
    assert capsys.readouterr().out.startswith(f"{tmp_path}/t.bin: {len(shards)} shards, 300 sent")
    assert main([*command, "--out", str(tmp_path / "u.bin"), "--text", "-"]) == 1
    assert "-: no file that can be cut into shards" in capsys.readouterr().err
    assert main(["subword", "--type", "word", "--text", str(tmp_path / "t.bin"), "--out", "w"]) == 1
    assert "a binarised corpus" in capsys.readouterr().err
