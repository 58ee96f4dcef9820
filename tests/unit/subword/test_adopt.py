"""SentencePiece models that another toolkit trained."""

import io

import pytest
import sentencepiece

from lmtools.cli import main
from lmtools.corpus import Corpus
from lmtools.errors import UserError
from lmtools.subword import SPECIALS, UNK, adopt, load_subword
from lmtools.text import NORMALISERS, Normaliser

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
        assert sum(ours.word_lengths(line)) == len(pieces)


def test_directory_and_corpus_hold_it(tmp_path):
    foreign(tmp_path / "m")
    ours = adopt(tmp_path / "m", NORMALISERS["librispeech"], tmp_path / "sw")
    assert load_subword(tmp_path / "sw").hash == ours.hash
    (tmp_path / "text").write_text("The BLUE finch\n")
    assert (
        main(
            [
                "corpus",
                "--text",
                str(tmp_path / "text"),
                "--subword",
                str(tmp_path / "sw"),
                "--out",
                str(tmp_path / "c.bin"),
            ]
        )
        == 0
    )
    corpus = Corpus.open(tmp_path / "c.bin")
    assert corpus.subword.decode(corpus[0]) == "the blue finch"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split_by_whitespace": False, "vocab_size": 150}, "do not lie inside words"),
        ({"treat_whitespace_as_suffix": True}, "do not lie inside words"),
        ({"add_dummy_prefix": False}, "do not lie inside words"),
        ({"byte_fallback": True, "vocab_size": 320}, "falls back on bytes"),
        ({"user_defined_symbols": ["<mask>"]}, "<mask> is a special here"),
    ],
)
def test_unfit_models_are_refused(tmp_path, options, message):
    foreign(tmp_path / "m", **options)
    with pytest.raises(UserError, match=message):
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
