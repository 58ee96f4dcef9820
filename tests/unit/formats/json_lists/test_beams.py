"""Lists of CTC decoders: NeMo's beams, WeNet's candidates, dumps of pyctcdecode and torchaudio."""

import json

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import FORMATS, jsonl, read
from lmtools.types import Hypothesis, NBest

FRAMES = [["blue", [0, 4]]]
KEPT = {"text_frames": '[["blue", [0, 4]]]'}


def hyps(*rows):
    return tuple(Hypothesis(text, {"am": am}) for text, am in rows)


@pytest.fixture
def nemo(tmp_path):
    path = tmp_path / "preds_out_width2_alpha1.0_beta0.5.tsv"
    path.write_text("blue finch\t-3.5\nblue  fins\t-4\n\t-1e-1\nx\t-2.0\n")
    return path


def test_nemo_with_its_manifest(tmp_path, nemo):
    manifest = tmp_path / "dev.json"
    manifest.write_text(
        '{"audio_filepath": "/d/a1.wav", "duration": 1.5, "text": "blue finch"}\n'
        '{"audio_filepath": "d/a2.flac", "duration": 2}\n\n'
    )
    due = [
        NBest("a1", hyps(("blue finch", -3.5), ("blue fins", -4.0)), "blue finch"),
        NBest("a2", hyps(("", -0.1), ("x", -2.0))),
    ]
    assert read(nemo, f"nemo:manifest={manifest}") == due
    other = tmp_path / "beams.tsv"
    nemo.rename(other)
    assert read(other, f"nemo:manifest={manifest}") == due
    assert read(other, f"nemo:manifest={manifest},width=4") == due  # the score rises once
    for width in 3, 4:
        with pytest.raises(UserError, match="some utterance has fewer beams; give the manifest"):
            read(other, f"nemo:width={width}")
    with pytest.raises(UserError, match="its name says no width; give width=N or manifest=F"):
        read(other, "nemo")
    with pytest.raises(UserError, match="width=x: expected a number of lines"):
        read(other, "nemo:width=x")


def test_nemo_by_its_name(nemo):
    assert FORMATS.detect(nemo) == "nemo"
    assert [(nbest.utt, len(nbest.hyps)) for nbest in read(nemo)] == [("1", 2), ("2", 2)]


@pytest.mark.parametrize(
    ("scores", "width", "utterances", "sizes"),
    [
        ("-1 -2 -3 -0.1", 3, 2, [3, 1]),
        ("-1 -2 -0.1 -0.9 -0.2 -0.8", 3, 3, [2, 2, 2]),
        ("-1 -2 -0.1 -0.9 -0.2 -0.8", 3, None, None),  # it rises within three lines
        ("-1 -2 -3 -4 -5 -6", 3, None, [3, 3]),
        ("-1 -2 -3 -4 -5 -6", 3, 2, [3, 3]),
        ("-1 -2 -3 -4 -5", 3, 2, None),  # nothing tells where the second begins
        ("-1 -2 -3 -4 -0.5", 3, 2, None),  # four lines before it rises
        ("-1 -2 -0.5 -2 -0.5", 3, 2, None),  # it rises once too often
        ("-2 -1 -3 -4", 2, 2, [2, 2]),  # as many lines as can be: unsorted ones, too
        ("-1 -2 -3 -0.1", None, 2, [3, 1]),
        ("-1 -2 -3 -4", None, 2, [2, 2]),
        ("-1 -2 -3", None, 2, None),
        ("-1", 3, 2, None),
        ("", 3, 2, None),
        ("", 3, None, []),
    ],
)
def test_an_utterance_with_fewer_beams_than_the_width(tmp_path, scores, width, utterances, sizes):
    path = tmp_path / (f"preds_out_width{width}_a.tsv" if width else "beams.tsv")
    path.write_text("".join(f"t{score}\t{score}\n" for score in scores.split()))
    manifest = tmp_path / "m.json"
    rows = (f'{{"audio_filepath": "u{number}.wav"}}\n' for number in range(utterances or 0))
    manifest.write_text("".join(rows))
    spec = f"nemo:manifest={manifest}" if utterances else "nemo"
    if sizes is not None:
        found = read(path, spec)
        assert [len(nbest.hyps) for nbest in found] == sizes
        texts = [hyp.text for nbest in found for hyp in nbest.hyps]
        assert texts == [f"t{score}" for score in scores.split()]
    else:
        with pytest.raises(
            UserError, match=r"(has fewer|unequally many|up to 3) beams.*; give the"
        ):
            read(path, spec)


@pytest.mark.parametrize(
    "row, message",
    {
        "[]": r":2: the line is \[\]; expected an object",
        "{": ":2: not JSON",
        '{"text": "x"}': ":2: key 'audio_filepath' is missing",
        '{"audio_filepath": "x/a1.wav"}': ":2: utterance 'a1' occurs a second time",
        '{"audio_filepath": "a 2.wav"}': ":2: utterance id 'a 2' is empty or holds",
        '{"audio_filepath": "a2.wav", "text": 3}': ":2: 'text' is 3",
    }.items(),
)
def test_damaged_manifests(tmp_path, nemo, row, message):
    manifest = tmp_path / "dev.json"
    manifest.write_text('{"audio_filepath": "a1.wav"}\n' + row + "\n")
    with pytest.raises(UserError, match=f"dev.json{message}"):
        read(nemo, f"nemo:manifest={manifest}")


def test_segments_of_one_recording(tmp_path, nemo):
    manifest = tmp_path / "dev.json"
    rows = [{"audio_filepath": "a.wav", "offset": offset, "text": "x"} for offset in (0, 2.5)]
    for some, utts in ((rows, ["a-0", "a-2.5"]), (rows[::-1], ["a-2.5", "a-0"])):
        manifest.write_text("".join(json.dumps(row) + "\n" for row in some))
        assert [nbest.utt for nbest in read(nemo, f"nemo:manifest={manifest}")] == utts
    rows[1]["audio_filepath"] = "b.wav"  # one row a recording: called as the recording
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [nbest.utt for nbest in read(nemo, f"nemo:manifest={manifest}")] == ["a", "b"]


def test_wenet(tmp_path, capsys):
    path = tmp_path / "result"
    path.write_text("wav a1\ncandidate -3.25 blue finch\ncandidate -4.5 blue\nwav a2\n")
    assert FORMATS.detect(path) == "wenet"
    due = [NBest("a1", hyps(("blue finch", -3.25), ("blue", -4.5))), NBest("a2", ())]
    assert read(path) == due
    (tmp_path / "text").write_text("a1 blue finch\na2 x\n")
    command = ["convert", str(path), f"{tmp_path}/n.jsonl", "--ref", f"{tmp_path}/text"]
    assert main(command) == 0
    assert [nbest.ref for nbest in jsonl.read(f"{tmp_path}/n.jsonl")] == ["blue finch", "x"]


def test_dumped_beams(tmp_path):
    path = tmp_path / "b.json"
    rows = [
        {"utt": "py", "ref": "blue", "beams": [["blue", None, FRAMES, -3.5, -5.25]]},
        {"utt": "pool", "beams": [["blue", FRAMES, -3.5, -5.25]]},
        {"utt": "brain", "beams": [["blue", -3.5, -1.75], "blue;-3.5;-1.75"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert FORMATS.detect(path) == "beams"
    scores = {"am": -3.5, "lm": -1.75}
    full, bare = Hypothesis("blue", scores, KEPT), Hypothesis("blue", scores)
    assert read(path) == [
        NBest("py", (full,), "blue"),
        NBest("pool", (full,)),
        NBest("brain", (bare, bare)),
    ]


def test_a_directory_of_torchaudio(tmp_path):
    home = tmp_path / "d"
    home.mkdir()
    beams = [{"words": ["blue", "finch"], "score": -3.5, "tokens": [1, 2]}]
    (home / "a1.json").write_text(json.dumps({"beams": beams}))
    (home / "a2.json").write_text('{"beams": [{"text": "x", "score": 1}]}')
    assert FORMATS.detect(home) == "beams"
    kept = Hypothesis("blue finch", {"am": -3.5}, {"tokens": "[1, 2]"})
    assert read(home) == [NBest("a1", (kept,)), NBest("a2", hyps(("x", 1.0)))]


ROWS = [("blue finch", -3.5, -5.25), ("blew finch", -4.0, -5.5)]


@pytest.mark.parametrize(
    "tree",
    [
        {"beams": [[t, FRAMES, a, b] for t, a, b in ROWS]},
        {"beams": [{"text": t, "text_frames": FRAMES, "logit_score": a, "lm_score": b,
                    "last_lm_state": None} for t, a, b in ROWS]},
        {"text": [row[0] for row in ROWS], "logit_score": [row[1] for row in ROWS],
         "lm_score": [row[2] for row in ROWS], "text_frames": [FRAMES, FRAMES]},
    ],
    ids=["row", "by name", "columns"],
)  # fmt: skip
def test_the_logit_score_and_the_total_by_any_name(tmp_path, tree):
    path = tmp_path / "b.json"
    path.write_text(json.dumps({"utt": "a", "ref": "blue finch"} | tree) + "\n")
    assert FORMATS.detect(path) == "beams"
    hyps = [Hypothesis(text, {"am": am, "lm": total - am}, KEPT) for text, am, total in ROWS]
    assert read(path) == [NBest("a", tuple(hyps), "blue finch")]


def test_the_best_beam_alone_of_hugging_face(tmp_path):
    tree = {"utt": "a", "text": "x", "logit_score": -1, "lm_score": -3, "word_offsets": None}
    (tmp_path / "b.json").write_text(json.dumps(tree))
    assert read(tmp_path / "b.json") == [NBest("a", (Hypothesis("x", {"am": -1.0, "lm": -2.0}),))]
