import json

from lmtools.formats import FORMATS

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


def test_a_real_file(tmp_path):
    path = tmp_path / "data.json"
    path.write_text(json.dumps(TREE, indent=4, ensure_ascii=False, sort_keys=True))
    lists = list(ESPNET1.read(path))
    assert [(n.utt, n.ref, [(h.text, h.scores) for h in n.hyps]) for n in lists] == [
        ("zed1", "BLUE FINCH", [("BLUE FIN", {"am": -7.5}), ("BLUE FINCH", {"am": -8.25})]),
        ("zed2", "BLUE FINCH", [("", {"am": 0.0})]),
    ]  # fmt: skip
    assert lists[0].extra["utt2spk"] == '"zed"' and ESPNET1.recognises(path, "{")
