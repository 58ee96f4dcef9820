"""Kaldi's archives of N-best rescoring."""

import gzip
import io
import sys

import pytest

from lmtools.base.errors import UserError
from lmtools.formats.kaldi_tables import Writer
from lmtools.formats.nbest import kaldi_nbest
from lmtools.types import TOTAL, Hypothesis, NBest

FILES = {
    "words_text": "zed1-1 blue finch sings\nzed1-2 blue fins\nzed-2-1 \n",
    "lmwt.nolm": "zed1-2 14.5\nzed-2-1 0\nzed1-1 14.25\n",
    "lmwt.withlm": "zed1-1 20.25\nzed1-2 22.5\nzed-2-1 1\n",
    "acwt": "zed1-1 -3120.5\nzed1-2 -3118\nzed-2-1 -7\n",
    "ali": "zed1-1 3 3 4\nzed1-2 3 4\nzed-2-1 \n",
}
LISTS = [
    NBest("zed1", (Hypothesis("blue finch sings", {"am": 3120.5, "graph": -14.25, "lm": -6.0},
    {"ali": "3 3 4"}),
                   Hypothesis("blue fins", {"am": 3118.0, "graph": -14.5, "lm": -8.0},
                   {"ali": "3 4"}))),
    NBest("zed-2", (Hypothesis("", {"am": 7.0, "graph": 0.0, "lm": -1.0}, {"ali": ""}),)),
]  # fmt: skip


def laid(root, files, place="archives.1"):
    """A directory with `files`: text by name."""
    (root / place).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / place / name).write_text(content)
    return root


@pytest.mark.parametrize("place", ["archives.1", "."])
def test_joins_by_key_and_takes_the_lm_from_a_difference(tmp_path, place):
    assert list(kaldi_nbest.read(laid(tmp_path, FILES, place))) == LISTS
    assert kaldi_nbest.recognises(tmp_path, "")
    (tmp_path / place / "lmwt.lmonly").write_text("zed1-1 6.5\nzed1-2 8\nzed-2-1 1\n")
    assert [hyp.scores["lm"] for nbest in kaldi_nbest.read(tmp_path) for hyp in nbest.hyps] == [
        -6.5,
        -8.0,
        -1.0,
    ]


def test_scp_and_compressed_archives_are_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(laid(tmp_path, FILES))
    for name in ("lmwt.nolm", "lmwt.withlm", "acwt", "ali"):
        rows = [line.partition(" ") for line in FILES[name].splitlines()]
        with (
            Writer(f"ark:archives.1/{name}.ark") as out,
            open(f"archives.1/{name}.scp", "w") as script,
        ):
            at = 0
            for key, _, value in rows:
                out.write(key, value)
                script.write(f"{key} archives.1/{name}.ark:{at + len(key) + 1}\n")
                at += len(f"{key} {value}\n")
        (tmp_path / "archives.1" / name).unlink()
    (tmp_path / "archives.1" / "ali.ark").unlink()
    with pytest.raises(UserError, match=r"ali.ark: cannot read"):
        list(kaldi_nbest.read(tmp_path))
    (tmp_path / "archives.1" / "ali.scp").unlink()
    (tmp_path / "archives.1" / "ali.gz").write_bytes(gzip.compress(FILES["ali"].encode()))
    assert list(kaldi_nbest.read(tmp_path)) == LISTS


def test_jobs_come_in_numeric_order_and_numbers_are_kept(tmp_path):
    for job, rows in ((10, "c-1 x\n"), (2, "b-10 z\nb-2 y\n"), (1, "a-0 x\n")):
        laid(tmp_path, {"words_text": rows}, f"archives.{job}")
    found = list(kaldi_nbest.read(tmp_path))
    assert [(nbest.utt, [(hyp.text, hyp.extra.get("n")) for hyp in nbest.hyps]) for nbest in found] == [  # noqa: E501
        ("a", [("x", "0")]), ("b", [("y", "2"), ("z", "10")]), ("c", [("x", None)]),
    ]  # fmt: skip
    kaldi_nbest.write(found, tmp_path / "out")
    assert (tmp_path / "out/words_text").read_text() == "a-0 x\nb-2 y\nb-10 z\nc-1 x\n"
    turned = [NBest(nbest.utt, nbest.hyps[::-1]) for nbest in found]
    kaldi_nbest.write(turned, tmp_path / "out")
    assert (tmp_path / "out/words_text").read_text() == "a-0 x\nb-1 z\nb-2 y\nc-1 x\n"


def test_word_ids(tmp_path):
    laid(tmp_path, {"words": "a-1 3 0 1\na-2 \n", "acwt": "a-1 1\na-2 2\n"})
    with pytest.raises(UserError, match=r"kaldi-nbest:words=words.txt"):
        list(kaldi_nbest.read(tmp_path))
    (tmp_path / "words.txt").write_text("<eps> 0\nblue 1\nfinch 3\n")
    found = list(kaldi_nbest.read(tmp_path))
    assert found == [
        NBest(
            "a",
            (
                Hypothesis("finch blue", {"am": -1.0}, {"words": "3 0 1"}),
                Hypothesis("", {"am": -2.0}, {"words": ""}),
            ),
        )
    ]
    (tmp_path / "words.txt").write_text("<eps> 0\nblue 1\n")
    with pytest.raises(UserError, match=r"has the word 3, which .*words.txt lacks"):
        list(kaldi_nbest.read(tmp_path))


def test_what_a_rescored_list_leaves_on_disk(tmp_path):
    scores = {"am": -2.0, "graph": -1.0, "lm": -4.0, "tta": -3.5, TOTAL: -9.0}
    kaldi_nbest.write([NBest("a", (Hypothesis("x", scores),))], tmp_path / "d")
    found = {child.name: child.read_text() for child in (tmp_path / "d").iterdir()}
    assert found == {
        "words_text": "a-1 x\n",
        "acwt": "a-1 2.0\n",
        "lmwt.nolm": "a-1 1.0\n",
        "lmwt.lmonly": "a-1 4.0\n",
        "lmwt.withlm": "a-1 5.0\n",
        "lmwt.tta": "a-1 3.5\n",
        "lmwt.total": "a-1 9.0\n",
    }


def test_a_pipe(monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO("a-1 x y\na-2 \nb-1 é\n".encode()))
    )
    lists = kaldi_nbest.read("ark:-")
    assert next(lists) == NBest("a", (Hypothesis("x y"), Hypothesis("")))
    kaldi_nbest.write(lists, "ark,t:-")
    assert capsys.readouterr().out == "b-1 é\n"


def test_refuses_an_utterance_in_two_places(tmp_path):
    for job in (1, 2):
        laid(tmp_path, {"words_text": "a-1 x\n"}, f"archives.{job}")
    with pytest.raises(
        UserError, match=r"archives.2/words_text: utterance 'a' occurs a second time"
    ):
        list(kaldi_nbest.read(tmp_path))
    (tmp_path / "words_text").write_text("a-1 x\nb-1 x\na-2 x\n")
    with pytest.raises(UserError, match=r"words_text:3: utterance 'a' occurs a second time"):
        list(kaldi_nbest.read(tmp_path / "words_text"))


def test_refuses_to_lose_scores_or_foreign_directories(tmp_path):
    kaldi_nbest.write(
        [NBest("a", (Hypothesis("x", {"am": 1.0, TOTAL: 2.0}),))], tmp_path / "words_text"
    )
    (tmp_path / "words_text").unlink()
    (tmp_path / "mine").write_text("")
    with pytest.raises(UserError, match="holds no words_text"):
        kaldi_nbest.write(LISTS, tmp_path)
    assert [child.name for child in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("acoustic", "lm"), [("ac_cost", "lm_cost"), ("acoustic-costs.gz", "lm-costs.gz")]
)
def test_costs_under_the_names_of_nbest_to_linear(tmp_path, capsys, acoustic, lm):
    root = laid(tmp_path, {"words_text": FILES["words_text"]})
    for name, rows in ((acoustic, FILES["acwt"]), (lm, FILES["lmwt.withlm"])):
        data = rows.encode()
        (root / "archives.1" / name).write_bytes(
            gzip.compress(data) if name.endswith(".gz") else data
        )
    assert kaldi_nbest.recognises(root, "")
    assert [dict(hyp.scores) for nbest in kaldi_nbest.read(root) for hyp in nbest.hyps] == [
        {"am": 3120.5, "lm": -20.25},
        {"am": 3118.0, "lm": -22.5},
        {"am": 7.0, "lm": -1.0},
    ]
    assert capsys.readouterr().err == ""


def test_names_scores_that_it_does_not_read(tmp_path, capsys):
    files = {"acscore": FILES["acwt"].replace("1-1 -3120.5", "1-1\t-3120.5"), "words": "zed1-1 5\n"}
    root = laid(tmp_path, FILES | files)
    (root / "archives.1/log.gz").write_bytes(b"\x1f\x8b")
    assert list(kaldi_nbest.read(root))[1].hyps[0].scores == {"am": 7.0, "graph": 0.0, "lm": -1.0}
    assert capsys.readouterr().err == (
        f"{root}: scores beside the lists are not read: acscore; costs in a file lmwt.NAME are read"
        " as the score NAME\n"
    )
