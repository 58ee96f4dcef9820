"""Word lists of other toolkits: their order stays, their marks go, damage is named by its line."""

from shlex import split

import pytest
import yaml

from lmtools import UserError
from lmtools.cli import main
from lmtools.text import NORMALISERS, Normaliser
from lmtools.text.subword import SPECIALS, UNK, adopt, load_subword

LIBRISPEECH = NORMALISERS["librispeech"]


def made(tmp_path, text: str, normaliser=None, size=None):
    (tmp_path / "words.txt").write_text(text, encoding="utf-8")
    return adopt(tmp_path / "words.txt", normaliser or Normaliser(), tmp_path / "sw", size)


def words(subword) -> list[str]:
    assert subword.scheme == "word" and subword.vocabulary[:5] == SPECIALS
    return list(subword.vocabulary[5:])


@pytest.mark.parametrize(
    ("text", "expected", "counts"),
    [
        (
            "<eps> 0\n!SIL 1\n<SPOKEN_NOISE> 2\n<UNK> 3\nzoo 4\nape 5\n#0 6\n<s> 7\n</s> 8\n",
            ["<SPOKEN_NOISE>", "zoo", "ape"],
            [0, 0, 0],
        ),
        ("<sb>\t0\nTHE\t1\nAND\t2\n", ["THE", "AND"], [0, 0]),  # OpenFst parts by tabs
        # our vocab.txt
        ("the\t9\nof\t7\nzoo\t7\nape\t1\n", ["the", "of", "zoo", "ape"], [9, 7, 7, 1]),
        ("ape 3\nthe 9\nof 7\n", ["ape", "the", "of"], [3, 9, 7]),  # counts in another order
        ("the\nof\n\n[NOISE]\nnaïve\n漢\n", ["the", "of", "[NOISE]", "naïve", "漢"], [0] * 5),
        ("\ufeffthe\r\nof\r\nthe\r\n", ["the", "of"], [0, 0]),
        ("<mask>\n<pad>\nthe", ["the"], [0]),
    ],
)
def test_order_and_counts(tmp_path, text, expected, counts):
    made(tmp_path, text)
    subword = load_subword(tmp_path / "sw")
    assert words(subword) == expected and subword.counts.tolist() == counts
    assert subword.encode("the zebra <s>")[1:] == [UNK, UNK]


def test_words_are_normalised_and_merge(tmp_path):
    text = "<eps> 90\nTHE 50\nDON'T 30\nthe 8\nDon’t 7\nHALF-WAY 6\n... 5\n[NOISE] 4\n<UNK> 3\n"
    subword = made(tmp_path, text, LIBRISPEECH)
    assert words(subword) == ["the", "don't", "noise"] and subword.counts.tolist() == [58, 37, 4]
    assert subword.unknown("The NOISE, don't") == 0
    assert words(made(tmp_path, "THE\n<UNK>\n<Unk>\n", Normaliser(case="lower"))) == ["the"]


def test_a_list_is_cut_and_says_what_it_lacks(tmp_path):
    subword = made(tmp_path, "<s> 7\na 50\nb 30\nc 15\nd 5\n", size=7)
    assert subword.size == 7 and words(subword) == ["a", "b"]
    assert subword.left_out.items == 2 and subword.left_out.share == pytest.approx(0.2)
    assert yaml.safe_load((tmp_path / "sw/subword.yaml").read_text())["left_out"] == {
        "items": 2,
        "share": 0.2,
    }
    assert made(tmp_path, "a\nb\nc\n", size=6).left_out == (2, None)
    assert made(tmp_path, "a\nb\nc\n", size=600).left_out == (0, None)
    with pytest.raises(UserError, match="a vocabulary of 5 has no room beside its 5 specials"):
        made(tmp_path, "a\nb\n", size=5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1\nb\n", r"words.txt:2: expected a word and its id or count, found 'b'"),
        (b"a\nb 1\n", r"words.txt:2: expected a word, found 'b 1'"),
        (b"a 1\n\nb -2\n", r"words.txt:3: expected a word and its id or count, found 'b -2'"),
        (b"a 1\nb 1.5\n", r"words.txt:2: expected a word and its id"),
        (
            b"the king came\n",
            r"words.txt:1: .*found 'the king came'; give a word list, or --text to learn from text",
        ),
        (b"the\nk\xff\n", r"words.txt:2: not UTF-8"),
        (b"the\na\0b\n", r"words.txt:2: expected a word, found 'a\\x00b'"),
        (b"<s>\n</s>\n", r"words.txt: no words in it"),
        (b" \n\t\n", r"words.txt: no words in it"),
        # a SentencePiece .vocab
        ("\u2581the\t-3.2\n".encode(), r"words.txt:1: expected a word and its id"),
    ],
)
def test_damage_is_one_line(tmp_path, capsys, content, message):
    (tmp_path / "words.txt").write_bytes(content)
    with pytest.raises(UserError, match=message):
        adopt(tmp_path / "words.txt", Normaliser(), tmp_path / "sw")
    assert (
        main(["subword", "--model", str(tmp_path / "words.txt"), "--out", str(tmp_path / "sw")])
        == 1
    )
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "sw").exists()


def test_command(tmp_path, capsys):
    (tmp_path / "words.txt").write_text("<eps> 0\nTHE 1\nKING 2\nQUEEN 3\nZOO 4\n")
    options = split(f"--model {tmp_path}/words.txt --out {tmp_path}/sw --normaliser librispeech")
    assert main(["subword", *options]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'sw'}: word vocabulary of 9 ids, hash ")
    assert main(["subword", *options, "--vocab-size", "7"]) == 0
    assert (
        capsys.readouterr().out.splitlines()[1]
        == "2 distinct words are <unk>; oov_penalty=0.69 shares its probability evenly among them"
    )
    assert load_subword(tmp_path / "sw").encode("The king, the queen") == [5, 6, 5, UNK]


def test_a_model_of_pieces_is_not_cut(tmp_path, capsys):
    (tmp_path / "t").write_text("the king came to the river\n" * 20)
    assert (
        main(split(f"subword --text {tmp_path}/t --type bpe --vocab-size 30 --out {tmp_path}/sw"))
        == 0
    )
    assert "<unk>" not in capsys.readouterr().out
    options = split(f"--model {tmp_path}/sw/subword.model --vocab-size 20 --out {tmp_path}/cut")
    assert main(["subword", *options]) == 1
    assert "a SentencePiece model has the size it was trained with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("scheme", "bound"),
    [("word", "vocab-size=8"), ("word", "min-count=2"), ("char", "min-count=2")],
)
def test_what_a_list_leaves_out_of_its_text(tmp_path, capsys, scheme, bound):
    """Counted a second time, from the list that came out."""
    lines = ["the king came", "the king and the queen came", "a zebra <unk> zebra", "the xylophone"]
    (tmp_path / "t").write_text("\n".join(lines) + "\n")
    assert (
        main(
            [
                *split(f"subword --text {tmp_path}/t --type"),
                scheme,
                *split(f"--{bound} --out {tmp_path}/sw"),
            ]
        )
        == 0
    )
    subword = load_subword(tmp_path / "sw")
    items = [item for line in lines for item in subword.items(line)]
    missing = [item for item in items if item not in subword.ids]
    noun = {"word": "words", "char": "characters"}[scheme]
    expected = (
        f"{len(set(missing))} distinct {noun} are <unk>, {len(missing) / len(items):.3%} of the"
        " text; oov_penalty="
    )
    assert capsys.readouterr().out.splitlines()[1].startswith(expected)
    assert sum(map(subword.unknown, lines)) == len(missing) > 0
