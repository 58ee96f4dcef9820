import re

import pytest

from lmtools.base.errors import UserError
from lmtools.formats.nbest import espnet2
from lmtools.types import TOTAL, Hypothesis, NBest


def decoded(root, files):
    """A decode directory with `files`: content by path."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


FILES = {
    "1best_recog/text": "zed1 blue finch sings\nzed2  \n",
    "1best_recog/score": "zed2 0.0\nzed1 tensor(-7.41)\n",
    "1best_recog/token": "zed1 ▁blue ▁fin ch ▁sings\nzed2 \n",
    "2best_recog/text": "zed1 blue fin sings\n",
    "2best_recog/score": "zed1 tensor(-8.5, device='cuda:0')\n",
    "10best_recog/text": "zed1 blue sings\n",
    "10best_recog/score": "zed1 -9.25e+00\n",
}
LISTS = [
    NBest("zed1", (Hypothesis("blue finch sings", {"am": -7.41}, {"token": "▁blue ▁fin ch ▁sings"}),
                   Hypothesis("blue fin sings", {"am": -8.5}),
                   Hypothesis("blue sings", {"am": -9.25}))),
    NBest("zed2", (Hypothesis("", {"am": 0.0}, {"token": ""}),)),
]  # fmt: skip


@pytest.mark.parametrize("place", ["", "logdir/output.1/", "output.1/"])
def test_reads_ranks_in_numeric_order_wherever_they_lie(tmp_path, place):
    root = decoded(tmp_path, {place + name: content for name, content in FILES.items()})
    assert espnet2.recognises(root, "")
    assert espnet2.read(root) == LISTS


@pytest.mark.parametrize(
    "spelled",
    [
        *('"tensor(-0.5889)"', "'tensor(-0.5889)'", '"-0.5889"', "tensor([-0.5889])"),
        "\"tensor(-0.5889, device='cuda:0')\"",
        "tensor(-0.5889, device='cuda:0', grad_fn=<AddBackward0>)",
        "tensor(-0.5889, dtype=torch.float64, grad_fn=<SelectBackward0>)",
    ],
)
def test_tensors_as_they_are_printed_or_dumped(tmp_path, spelled):
    files = {"text": "u x\n", "score": f"u {spelled}\n", "scores": f"u {{'ctc': {spelled}}}\n"}
    root = decoded(tmp_path, {f"1best_recog/{name}": content for name, content in files.items()})
    assert espnet2.read(root)[0].hyps[0].scores == {"am": -0.5889, "ctc": -0.5889}


def test_jobs_come_in_numeric_order(tmp_path):
    root = decoded(
        tmp_path, {f"logdir/output.{job}/1best_recog/text": f"u{job} x\n" for job in (1, 2, 10)}
    )
    assert [nbest.utt for nbest in espnet2.read(root)] == ["u1", "u2", "u10"]


def test_refuses_an_utterance_in_two_jobs(tmp_path):
    root = decoded(
        tmp_path, {f"logdir/output.{job}/1best_recog/text": "same x\n" for job in (1, 2)}
    )
    with pytest.raises(
        UserError, match=r"output.2/1best_recog/text: utterance 'same' occurs in two jobs"
    ):
        espnet2.read(root)


def test_refuses_a_directory_without_ranks(tmp_path):
    assert not espnet2.recognises(tmp_path, "")
    with pytest.raises(UserError, match="1best_recog"):
        espnet2.read(tmp_path)


def test_writes_what_it_reads_and_replaces_an_earlier_directory(tmp_path):
    root = tmp_path / "new" / "decode"
    deeper = [NBest("a", tuple(Hypothesis(f"h{rank}", {"am": -float(rank)}) for rank in range(5)))]
    espnet2.write(deeper, root)
    assert espnet2.read(root) == deeper
    espnet2.write(LISTS, root)
    assert espnet2.read(root) == LISTS
    assert (root / "1best_recog/score").read_text() == "zed1 tensor(-7.41)\nzed2 tensor(0.0)\n"
    assert [child.name for child in root.parent.iterdir()] == ["decode"]


PARTS = {
    "1best_recog/text": "zed1 blue finch\nzed2  \n",
    "1best_recog/score": "zed1 tensor(-7.41)\nzed2 0.0\n",
    "1best_recog/scores": "zed1 {'decoder': tensor(-4.1, device='cuda:0'), 'ctc': -2.5e+00,"
    " 'lm': tensor(-9.)}\nzed2 {}\n",
    "2best_recog/text": "zed1 blue fin\n",
    "2best_recog/score": "zed1 -8.5\n",
    "2best_recog/scores": "zed1 decoder=-5 ctc: tensor(-3.0) lm -8\n",
}


def test_the_parts_of_a_score_are_scores_of_their_names(tmp_path, capsys):
    root = decoded(tmp_path / "d", PARTS)
    lists = espnet2.read(root)
    assert [[dict(hyp.scores) for hyp in nbest.hyps] for nbest in lists] == [
        [
            {"am": -7.41, "decoder": -4.1, "ctc": -2.5, "lm": -9.0},
            {"am": -8.5, "decoder": -5.0, "ctc": -3.0, "lm": -8.0},
        ],
        [{"am": 0.0, "decoder": 0.0, "ctc": 0.0, "lm": 0.0}],
    ]
    espnet2.write(lists, tmp_path / "again")
    assert espnet2.read(tmp_path / "again") == lists
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("decoder=-5 -3", "'-3' is no score with a name"),
        ("decoder=-5 decoder=-3", "'decoder=-3' is no score with a name"),
        ("am=-5", "'am=-5' is no score with a name"),
        ("decoder=nan", "decoder is 'nan'; expected a finite number"),
        ("decoder=-5", "hypothesis 2 has scores am, decoder, earlier ones am, ctc, decoder, lm"),
    ],
)
def test_refuses_parts_that_are_none(tmp_path, line, cause):
    root = decoded(tmp_path, PARTS | {"2best_recog/scores": f"zed1 {line}\n"})
    with pytest.raises(UserError, match=re.escape(cause)):
        espnet2.read(root)


def test_names_scores_that_it_does_not_read(tmp_path, capsys):
    others = {f"{rank}best_recog/ctc_score": "zed1 -3\n" for rank in (1, 2)}
    assert len(espnet2.read(decoded(tmp_path, PARTS | others))) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path}: scores beside the lists are not read: ctc_score; lines `utt NAME=number"
        " NAME=number` in a file `scores` are read\n"
    )


def test_refuses_names_without_place_and_foreign_directories(tmp_path):
    with pytest.raises(UserError, match="'a': has the scores 2, am"):
        espnet2.write([NBest("a", (Hypothesis("x", {"am": -1.0, "2": -2.0}),))], tmp_path / "d")
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").write_text("")
    with pytest.raises(UserError, match="choose another name"):
        espnet2.write(LISTS, tmp_path)
    with pytest.raises(UserError, match="choose another name"):
        espnet2.write(LISTS, tmp_path / "mine")
    assert [child.name for child in tmp_path.iterdir()] == ["mine"]


def test_a_total_takes_the_place_of_the_score(tmp_path):
    scores = {"am": -1.0, "lm": -2.0, TOTAL: -3.5}
    espnet2.write([NBest("a", (Hypothesis("x", scores, {"token_int": "3 4"}),))], tmp_path / "d")
    assert (tmp_path / "d/1best_recog/score").read_text() == "a tensor(-3.5)\n"
    assert (tmp_path / "d/1best_recog/token_int").read_text() == "a 3 4\n"
