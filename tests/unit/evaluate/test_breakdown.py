import json
from pathlib import Path

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.evaluate.corpus import References
from lmtools.evaluate.inputs import cut_words
from lmtools.evaluate.show import count_words, find_namer, split_evaluation
from lmtools.formats import kaldi_text, read
from lmtools.formats.kaldi_text import find_speakers
from lmtools.rescoring.tuning import Crossing
from lmtools.rescoring.tuning_options import TuningOptions

REFS = {"ann-1": "a b c", "ann-2": "a", "bob_1": "a b c d e f g"}
HYPS = {"ann-1": "a x c d", "ann-2": "", "bob_1": "a b c d e f"}


def test_parts_add_up():
    result = References(REFS).evaluate(HYPS)
    for by in ("speaker", "length"):
        parts = split_evaluation(result, list(REFS), find_namer(by, {}, REFS))
        assert np.array_equal(sum(part.total for part in parts), result.total)
        assert [part.utterances for part in parts] == [2, 1]
    assert [part.name for part in parts] == ["0-5", "6-10"]
    assert parts[0].score == 75 and parts[1].score == pytest.approx(100 / 7)


def test_errors_by_word():
    errors = count_words(References(REFS), HYPS)
    assert errors.confusions == {("b", "x"): 1}
    assert errors.insertions == {"d": 1}
    assert errors.deletions == {"a": 1, "g": 1}
    assert errors.rank_words() == [("a", 1, 3), ("b", 1, 2), ("g", 1, 1)]


def test_speakers(tmp_path):
    (tmp_path / "utt2spk").write_text("ann-1 s1\nann-2 s2\n")
    namer = find_namer(f"speaker={tmp_path / 'utt2spk'}", {})
    assert namer("ann-2", np.zeros(4)) == "s2"
    with pytest.raises(UserError, match="utt2spk: has no session of 'bob_1'"):
        find_namer(f"session={tmp_path / 'utt2spk'}", {})("bob_1", 0)


WHO = [  # ids, speakers that lists name, speakers or why not
    ("19-198-0001 19-198-0002 26-495-0001 26-496-0001", {}, "19 19 26 26"),
    ("sw1_2-3 sw1_4-5 sw2-A_1", {}, "sw1 sw1 sw2"),
    ("p225_001 p225_002", {}, "p225 p225"),
    ("talk-1", {}, "talk"),
    ("alone", {}, "alone"),
    ("BAC009S0002W0122 BAC009S0002W0123 BAC009S0003W0122", {}, None),
    ("common_voice_en_1 common_voice_en_2 common_voice_de_3", {}, None),
    ("aB3-x_1 Zk9-y_2 qQ1_z-3 vM4-1_2", {}, None),  # each its own: no speakers that come again
    ("ann-1 ann-2 alone", {}, None),
    ("20090114-0900-en_1 20090114-0900-en_2 20090115-0900-en_1", {}, None),
    ("_x _y", {}, None),
    ("u1 u2 u3", {"u1": "ann", "u2": "ben", "u3": "ann"}, "ann ben ann"),
    ("ann-1 ben-1", {"ann-1": "s"}, "no speaker of 'ben-1'"),
    ("m1 m2", {"m1": "ann", "m2": ""}, "several speakers in 'm2'"),
]


@pytest.mark.parametrize(("ids", "said", "who"), WHO)
def test_who_speaks(ids, said, who):
    if who and " in '" not in who and " of '" not in who:
        assert " ".join(find_speakers(ids.split(), said, "F", "give utt2spk").values()) == who
        return
    cause = who or "ids such as .* do not tell who speaks"
    with pytest.raises(UserError, match=f"F: {cause}; give utt2spk"):
        find_speakers(ids.split(), said, "F", "give utt2spk")


def test_lists_name_speakers(tmp_path, monkeypatch, capsys):
    """By `speaker` of lists, at the top or in `extra`, and of a manifest; `tune` takes them too."""
    monkeypatch.chdir(tmp_path)
    row = '{"utt": "u%d", "ref": "a b", "hyps": [{"text": "a"}], %s}\n'
    said = ['"speaker": "ann"', '"extra": {"speaker": "ben"}', '"speaker": "ann"']
    Path("l.jsonl").write_text("".join(row % pair for pair in enumerate(said)))
    Path("m.json").write_text(
        "".join(
            f'{{"id": "u{n}", "text": "a b", "speaker": "{who}"}}\n' for n, who in enumerate("xyx")
        )
    )
    for files, names in (("--hyp l.jsonl", ["ann", "ben"]), ("--ref m.json --hyp l.jsonl", "xy")):
        assert main(f"evaluate {files} --by speaker --out o.json".split()) == 0
        parts = json.loads(Path("o.json").read_text())["by speaker"]
        assert [part["name"] for part in parts] == [*names]
        assert [part["utterances"] for part in parts] == [2, 1]
    crossing = Crossing(read("l.jsonl"), TuningOptions(folds="speaker"), None, "l.jsonl")
    assert crossing.utterances == {"ann": ("u0", "u2"), "ben": ("u1",)}


STM = """r1 1 ann 0.0 2.0 a b c
r1 1 ben 2.0 4.0 d e
r2 1 ann 0.0 2.0 f g
"""
COMMAND = ["evaluate", "--ref", "r.stm", "--by", "speaker", "--out", "o.json", "--hyp"]


def test_speakers_of_an_stm_are_speakers(tmp_path, monkeypatch, capsys):
    """With times by segment; without times where each recording has one speaker."""
    monkeypatch.chdir(tmp_path)
    Path("r.stm").write_text(STM)
    words = [("r1", "a x c d e"), ("r2", "f g")]
    Path("h.ctm").write_text(
        "".join(
            f"{recording} 1 {0.75 * place + 0.1:.2f} 0.1 {word}\n"
            for recording, text in words
            for place, word in enumerate(text.split())
        )
    )
    assert main([*COMMAND, "h.ctm"]) == 0
    parts = json.loads(Path("o.json").read_text())["by speaker"]
    assert [(part["name"], part["utterances"], part["score"]) for part in parts] == [
        ("ann", 2, 20),
        ("ben", 1, 0),
    ]
    kaldi_text.write({"r1": "a b c d e", "r2": "f"}, "h.txt")
    assert main([*COMMAND, "h.txt"]) == 1
    assert "several speakers in 'r1'; give" in capsys.readouterr().err
    Path("r.stm").write_text(STM.replace("ben", "ann"))
    assert main([*COMMAND, "h.txt"]) == 0
    assert [p["name"] for p in json.loads(Path("o.json").read_text())["by speaker"]] == ["ann"]


CHANNELS = """;; comment
r1 A ann 2.0 4.0 <o,f> c d
r1 A ann 0.0 2.0 <o,f> a b
r1 B bob 0.0 9.0 <o,m> e
R2 1 cat 0.0 1.0 <o,f> ignore_time_segment_in_scoring
R2 1 cat 1.0 2.0 f
"""
WORDS = """r1 A 9.0 0.3 d
r1 A 0.1 0.2 a
r1 A 1.8 0.3 b
r1 A 1.9 0.3 c 0.5
r2 1 0.2 0.2 noise
r2 1 1.2 0.2 f
;; r1 is empty
"""


def test_words_go_by_their_middle_and_the_last_segment_takes_the_rest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("r.stm").write_text(CHANNELS)
    Path("h.ctm").write_text(WORDS)
    ref, (hyp,), segments = cut_words("r.stm", ["h.ctm"])
    assert ref.texts == {"r1-A-0000": "a b", "r1-A-0001": "c d", "r1-B-0000": "e", "R2-1-0001": "f"}
    assert hyp.texts == {**ref.texts, "r1-B-0000": ""}
    assert segments["r1-A-0001"].label == "o,f"
    command = "evaluate --ref r.stm --hyp h.ctm --against h.ctm --normaliser librispeech:case=upper"
    assert main([*command.split(), "--by", "label", "--out", "o.json"]) == 0
    parts = json.loads(Path("o.json").read_text())["by label"]
    assert {part["name"]: part["deletions"] for part in parts} == {"o,f": 0, "o,m": 1, "": 0}
    assert main(["evaluate", "--ref", "r.stm", "--hyp", "h.ctm", "--session", "--by", "label"]) == 1


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("h.ctm", "r3 A 0.1 0.2 a\n", "h.ctm:1: recording 'r3', channel 'A' is not in r.stm"),
        ("h.ctm", "r1 1 0.1 0.2 a\n", "h.ctm:1: recording 'r1', channel '1' is not in r.stm"),
        ("h.ctm", "r1 A 0.1 a\n", "h.ctm:1: expected"),
        ("h.ctm", "r1 A x 0.1 a\n", "h.ctm:1: start"),
        ("h.ctm", "r1 A * * <ALT_BEGIN>\n", "h.ctm:1: expected .* no alternations"),
        ("r.stm", "r1 A ann 0.0\n", "r.stm:1: expected"),
        ("r.stm", ";; none\n", "r.stm: holds no segment"),
        ("r.stm", "r1 A ann 0 1 { a / b }\n", "r.stm:1: '{' is markup"),
    ],
)
def test_what_is_no_stm_or_ctm(tmp_path, monkeypatch, name, content, cause):
    monkeypatch.chdir(tmp_path)
    Path("r.stm").write_text(CHANNELS)
    Path("h.ctm").write_text(WORDS)
    Path(name).write_text(content)
    with pytest.raises(UserError, match=cause):
        cut_words("r.stm", ["h.ctm"])


@pytest.mark.parametrize(
    ("times", "told"), [("0 6 0.2 1", 1), ("0 6 6 7", 0), ("0.2 1 0 6", 1), ("0 2 1.9 3", 1)]
)
def test_overlapping_speakers_are_told(tmp_path, capsys, times, told):
    one, two = times.split()[:2], times.split()[2:]
    path = tmp_path / "r.stm"
    path.write_text(f"m 1 ann {' '.join(one)} <NA> a b\nm 1 ben {' '.join(two)} <NA> c\n")
    for reads in (lambda: list(read(str(path), "stm")), lambda: cut_words(str(path), [])):
        assert reads()
        said = capsys.readouterr().err
        assert said.count("begin while another speaker has the word") == told
    path.write_text(path.read_text().replace("ben", "ann"))
    list(read(str(path), "stm"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("by", ["label", "colour", "length=3", ""])
def test_unknown_parts(by):
    with pytest.raises(UserError, match=f"--by {by}: parts are speaker"):
        find_namer(by, {})
