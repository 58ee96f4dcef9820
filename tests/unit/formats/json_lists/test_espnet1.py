import json

from lmtools.formats import FORMATS
from lmtools.types import TOTAL, Hypothesis, NBest

ESPNET1 = FORMATS["espnet1"]


def output(rank, rec, token, score):
    return {"name": f"target1[{rank}]", "rec_text": rec, "rec_token": token, "rec_tokenid": "3 4",
    "score": score, "shape": [2, 52],
            "text": "BLUE FINCH", "token": "▁BLUE ▁FINCH", "tokenid": "5 6"}  # fmt: skip


TREE = {"utts": {
    "zed1": {"output": [output(1, "▁BLUE▁FIN<eos>", "▁BLUE ▁FIN <eos>", -7.5),
    output(2, "▁BLUE▁FINCH<eos>", "▁BLUE ▁FINCH <eos>", -8.25)],
             "utt2spk": "zed", "input": [{"feat": "x.ark:3"}]},
    "zed2": {"output": [output(1, "<eos>", "<eos>", 0)], "utt2spk": "zed"},
}}  # fmt: skip


def test_a_real_file_comes_back_as_it_was(tmp_path):
    path, again = tmp_path / "data.json", tmp_path / "again.json"
    path.write_text(json.dumps(TREE, indent=4, ensure_ascii=False, sort_keys=True))
    lists = list(ESPNET1.read(path))
    assert [(n.utt, n.ref, [(h.text, h.scores) for h in n.hyps]) for n in lists] == [
        ("zed1", "BLUE FINCH", [("BLUE FIN", {"am": -7.5}), ("BLUE FINCH", {"am": -8.25})]),
        ("zed2", "BLUE FINCH", [("", {"am": 0.0})]),
    ]  # fmt: skip
    ESPNET1.write(lists, again)
    assert json.loads(again.read_text()) == TREE
    assert ESPNET1.recognises(path, "{") and ESPNET1.recognises(
        again, again.read_text().split("\n")[0]
    )


def test_a_rescored_list_is_numbered_anew_and_changed_texts_lose_their_pieces(tmp_path):
    path = tmp_path / "data.json"
    path.write_text(json.dumps(TREE))
    first, second = next(ESPNET1.read(path)).hyps
    hyps = (
        Hypothesis(second.text, {"am": -8.25, "lm": -1.0, TOTAL: -9.25}, second.extra),
        Hypothesis("blue fins", {"am": -7.5, "lm": -2.0, TOTAL: -9.5}, first.extra),
    )
    ESPNET1.write([NBest("zed1", hyps, "new ref")], path)
    best, other = json.loads(path.read_text())["utts"]["zed1"]["output"]
    kept = dict(TREE["utts"]["zed1"]["output"][1])
    del kept["token"], kept["tokenid"]  # of the old reference
    assert best == {**kept, "name": "target1[1]", "score": -9.25, "text": "new ref"}
    assert (other["name"], other["rec_text"], other["score"]) == (
        "target1[2]",
        "blue fins<eos>",
        -9.5,
    )
    assert not {"rec_token", "token", "tokenid"} & other.keys()
