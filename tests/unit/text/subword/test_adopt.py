"""SentencePiece models that another toolkit trained."""

import io

import pytest
import sentencepiece

from lmtools import UserError
from lmtools.cli import main
from lmtools.text import Normaliser
from lmtools.text.subword import MASK, SPECIALS, UNK, adopt, load_subword

LINES = [
    "the blue finch sings at dawn",
    "the finches' song isn't it fine",
    "blue dawn blue song twelve 12 naïve",
    "singing and dawn",
] * 5


def foreign(path, **options):
    """A model as toolkits make it: SentencePiece's own specials and normalisation."""
    model = io.BytesIO()
    settings = {
        "vocab_size": 60,
        "hard_vocab_limit": False,
        "model_type": "bpe",
        "minloglevel": 2,
        **options,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, **settings
    )
    path.write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@pytest.mark.parametrize("scheme", ["bpe", "unigram"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"user_defined_symbols": ["<noise>"], "pad_id": 3, "unk_id": 1, "bos_id": -1, "eos_id": 0},
    ],
)
def test_pieces_are_sentencepieces_own(tmp_path, scheme, options):
    theirs = foreign(tmp_path / "m", model_type=scheme, **options)
    ours = adopt(tmp_path / "m", Normaliser(), tmp_path / "sw")
    assert ours.scheme == scheme
    assert ours.vocabulary[:5] == SPECIALS
    own = {"<unk>", "<s>", "</s>", "<pad>"}
    assert list(ours.vocabulary[5:]) == [
        piece for i in range(len(theirs)) if (piece := theirs.id_to_piece(i)) not in own
    ]
    # full-width letters: the model's own normalisation
    for line in [*LINES, "blue <noise> finch", "ｆｉｎｃｈ", "a <s> b 漢"]:
        pieces = theirs.encode(line, out_type=str)
        assert ours.pieces(line) == pieces
        known = [
            piece if theirs.piece_to_id(piece) != theirs.unk_id() else "<unk>" for piece in pieces
        ]
        assert [ours.vocabulary[i] for i in ours.encode(line)] == known
        assert sum(ours.lengths(ours.encode(line))) == len(pieces)


OTHERS = {
    "bytes": {"byte_fallback": True, "vocab_size": 330},
    "bytes, llama": {
        "byte_fallback": True, "vocab_size": 330, "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True,
    },
    "mask": {"user_defined_symbols": ["<mask>", "<sep>"]},
    "no prefix": {"add_dummy_prefix": False},
    "all": {"add_dummy_prefix": False, "byte_fallback": True, "vocab_size": 330,
            "user_defined_symbols": ["<mask>"]},
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["bpe", "unigram"])
@pytest.mark.parametrize("options", OTHERS.values(), ids=OTHERS)
def test_other_models_are_loaded_as_they_are(tmp_path, scheme, options):
    theirs = foreign(tmp_path / "m", model_type=scheme, **options)
    adopt(tmp_path / "m", Normaliser(), tmp_path / "sw")
    ours = load_subword(tmp_path / "sw")
    bytewise = "byte_fallback" in options
    for line in [*LINES, "blue 漢字 <sep> 🎵finch é", "漢 a", "a", ""]:
        pieces = theirs.encode(line, out_type=str)
        assert ours.pieces(line) == pieces
        assert len(ours.encode(line)) == sum(ours.lengths(ours.encode(line))) == len(pieces)
        assert len(ours.lengths(ours.encode(line))) == len(line.split())
        if bytewise:
            assert ours.decode(ours.encode(line)) == line and ours.unknown(line) == 0
    # a symbol of theirs that is a special of ours is nothing that text can hold
    ids = ours.encode("blue <mask>")
    assert MASK not in ids
    assert UNK in ids or "<mask>" not in options.get("user_defined_symbols", ())


@pytest.mark.parametrize("options", OTHERS.values(), ids=OTHERS)
def test_words_are_spelled_by_other_models(tmp_path, options):
    foreign(tmp_path / "m", **options)
    (tmp_path / "w").write_text("blue 9\nfinch 5\n漢 3\n")
    adopt(tmp_path / "w", Normaliser(), tmp_path / "words")
    ours = adopt(tmp_path / "m", Normaliser(), tmp_path / "sw", words=tmp_path / "words")
    spelled = ours.words.split(ours.encode("blue finch 漢 dawn"))
    found = [ours.words.words.vocabulary[ours.words.id_of(spelling)] for spelling in spelled]
    known = "漢" if "byte_fallback" in options else "<unk>"
    assert found == ["blue", "finch", known, "<unk>"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split_by_whitespace": False, "vocab_size": 150}, "do not lie inside words"),
        ({"treat_whitespace_as_suffix": True}, "do not lie inside words"),
    ],
)
def test_unfit_models_are_refused(tmp_path, options, message):
    foreign(tmp_path / "m", **options)
    with pytest.raises(UserError, match=f"m: a SentencePiece model that .*{message}.*; learn"):
        adopt(tmp_path / "m", Normaliser(), tmp_path / "sw")
    assert not (tmp_path / "sw").exists()


@pytest.mark.parametrize("content", [b"", b"\x0a\x05"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(UserError, match=r"m: cannot be a subword model here"):
        adopt(tmp_path / "m", Normaliser(), tmp_path / "sw")


def test_command(tmp_path, capsys):
    foreign(tmp_path / "m")
    assert main(["subword", "--model", str(tmp_path / "m"), "--out", str(tmp_path / "sw")]) == 0
    assert "bpe vocabulary of 62 ids" in capsys.readouterr().out
    assert load_subword(tmp_path / "sw").encode("漢")[-1] == UNK
    for wrong in (
        ["--model", "m", "--type", "bpe"],
        ["--text", "t"],
        ["--model", "m", "--text", "t", "--type", "bpe"],
        [],
    ):
        with pytest.raises(SystemExit) as status:
            main(["subword", *wrong, "--out", str(tmp_path / "other")])
        assert status.value.code == 2
