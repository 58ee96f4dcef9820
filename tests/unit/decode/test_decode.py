"""`lmtools decode` with a recogniser that needs no model: order, processes, kills, damage."""

import json
import os
import signal
import subprocess
import sys
import time
import wave
from pathlib import Path

import fake_recogniser
import numpy as np
import pytest
from processes import PATIENCE, descendants, gone

from lmtools.base import log
from lmtools.cli import main
from lmtools.decode import recognisers
from lmtools.formats import jsonl

pytest.importorskip("soundfile", reason="soundfile is not installed (pip install -e '.[asr]')")
TESTS = Path(__file__).parents[2]
SCRIPT = (
    "import fake_recogniser, sys; fake_recogniser.install(); from lmtools.cli import main;"
    " sys.exit(main(sys.argv[1:]))"
)


def record(path: Path, samples: int, rate: int = 16_000) -> None:
    """A WAV file of a tone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tone = np.rint(8000 * np.sin(np.arange(samples) / 20)).astype("<i2")
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(tone.tobytes())


@pytest.fixture
def home(tmp_path, monkeypatch):
    """LibriSpeech's layout with eight utterances, and a fake model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(recognisers.RECOGNISERS, "fake", None)
    fake_recogniser.install()
    for speaker in (7, 10):
        folder = tmp_path / f"set/{speaker}/1"
        for n in range(4):
            record(folder / f"{speaker}-1-{n}.wav", 1000 * speaker + 100 * n)
        lines = "".join(f"{speaker}-1-{n} SAID {n}\n" for n in range(4))
        (folder / f"{speaker}-1.trans.txt").write_text(lines)
    Path("m").mkdir()
    Path("m/model").write_text("word\n")
    return tmp_path


def decode(*more, out="o.jsonl") -> int:
    return main(["decode", "--asr", "fake:m", "--audio", "set", "--out", out, *map(str, more)])


def heard() -> int:
    """How many utterances were decoded so far, in all runs."""
    return len(Path("m.heard").read_text().splitlines()) if Path("m.heard").exists() else 0


def test_parts_have_the_lists_and_failures_of_one_run(home, capsys):
    record(home / "set/7/1/7-1-2.wav", fake_recogniser.RAISES)
    assert decode() == 3
    for number in (2, 3, 1):
        assert decode("--shard", f"{number}/3", out="p.jsonl") == 0
    assert main(["merge", "p.jsonl"]) == 3
    for name in ("o.jsonl", "o.jsonl.failed"):
        assert Path(name).read_bytes() == Path(name.replace("o", "p", 1)).read_bytes()
    assert "1 utterances failed; p.jsonl.failed says why" in capsys.readouterr().err
    for number in range(1, 10):  # more parts than recordings
        assert decode("--shard", f"{number}/9", out="q.jsonl") == 0
    assert main(["merge", "q.jsonl"]) == 3
    assert Path("o.jsonl").read_bytes() == Path("q.jsonl").read_bytes()


def test_lists_have_order_transcripts_and_scores(home, capsys):
    assert decode() == 0
    lists = list(jsonl.read("o.jsonl"))
    assert [nbest.utt for nbest in lists] == [
        f"{speaker}-1-{n}" for speaker in (10, 7) for n in range(4)
    ]
    assert lists[0].ref == "SAID 0" and len(lists[0].hyps) == 2
    assert lists[5].hyps[1].text == "word 7100 0." and lists[5].hyps[1].scores.keys() == {"am"}
    said = capsys.readouterr().err
    assert "o.jsonl: 16 hypotheses of 8 utterances, 0.1 minutes of speech" in said
    assert "real-time factor" in said


def test_a_killed_run_goes_on_with_the_same_bytes(home):
    assert decode(out="whole.jsonl") == 0 and heard() == 8
    words = [
        "decode", "--asr", "fake:m", "--audio", "set", "--out", "o.jsonl", "--nj", "2", "--opts",
        "seconds=0.3",
    ]  # fmt: skip
    place = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent)))}
    run = subprocess.Popen([sys.executable, "-c", SCRIPT, *words], env=place)
    until = time.monotonic() + PATIENCE
    while heard() < 8 + 4 and time.monotonic() < until:
        time.sleep(0.02)
    below = descendants(run.pid)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert gone(below) and not Path("o.jsonl").exists()
    before = heard()
    assert decode("--opts", "seconds=0.3") == 0
    # two at most were under way, and are not lost but made again
    assert 0 < heard() - before <= 8 - 2
    assert Path("o.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()
    assert decode("--opts", "seconds=0.3") == 0 and heard() <= before + 6


def test_other_options_lose_nothing(home):
    assert decode() == 0 and decode("--opts", "depth=3") == 0 and heard() == 16
    assert len(next(jsonl.read("o.jsonl")).hyps) == 3
    assert decode() == 0 and heard() == 16
    assert len(next(jsonl.read("o.jsonl")).hyps) == 2
    Path("m/model").write_text("other\n")
    assert decode() == 0 and heard() == 24


def test_other_audio_and_new_transcripts(home):
    assert decode() == 0
    record(Path("set/7/1/7-1-2.wav"), 5000)
    record(Path("set/7/1/7-1-9.wav"), 6000)
    text = Path("set/7/1/7-1.trans.txt")
    text.write_text(text.read_text().replace("SAID 1", "NO") + "7-1-9 NEW\n")
    assert decode() == 0 and heard() == 10
    lists = {nbest.utt: nbest for nbest in jsonl.read("o.jsonl")}
    assert lists["7-1-2"].hyps[0].text == "word 5000 0"
    assert (lists["7-1-1"].ref, lists["7-1-9"].ref, len(lists)) == ("NO", "NEW", 9)


def journal() -> Path:
    (found,) = Path().glob(".o.jsonl.*.journal")
    return found


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-20],
        lambda data: data.replace(b"word 7100 0.", b"word 7100 9"),
        lambda data: data[: len(data) // 2] + b"\xff\0" + data[len(data) // 2 + 2 :],
        lambda data: data + b'{"list": {"utt": "7-1-0", "hyps": []}}\n[1]\n\n{"seal": 1}',
    ],
    ids=["cut", "changed", "bytes", "foreign"],
)
def test_a_damaged_journal_is_made_good(home, damage):
    assert decode() == 0
    good = Path("o.jsonl").read_bytes()
    journal().write_bytes(damage(journal().read_bytes()))
    assert decode() == 0 and heard() <= 9
    assert Path("o.jsonl").read_bytes() == good
    before = heard()
    assert decode() == 0 and heard() == before


def test_bad_audio_is_told_and_the_rest_decoded(home, capsys):
    Path("set/7/1/7-1-1.wav").write_text("no audio")
    Path("set/10/1/10-1-3.wav").write_bytes(b"")
    assert decode() == 3
    said = capsys.readouterr().err
    reason = "set/7/1/7-1-1.wav: cannot be read as audio ("
    assert f"\n7-1-1: failed: {reason}" in f"\n{said}"
    assert "2 of 8 utterances failed (10-1-3, 7-1-1); o.jsonl.failed says why; mend" in said
    assert "o.jsonl: 12 hypotheses of 6 utterances, " in said
    report = dict(line.split(" ", 1) for line in Path("o.jsonl.failed").read_text().splitlines())
    assert list(report) == ["10-1-3", "7-1-1"] and report["7-1-1"].startswith(reason)
    assert [nbest.utt for nbest in jsonl.read("o.jsonl")] == [
        *("10-1-0", "10-1-1", "10-1-2", "7-1-0", "7-1-2", "7-1-3")
    ]
    before = heard()
    assert decode() == 3 and heard() == before  # tried again, and not heard
    record(Path("set/7/1/7-1-1.wav"), 7100)
    record(Path("set/10/1/10-1-3.wav"), 10_300)
    assert decode() == 0 and heard() == before + 2 and not Path("o.jsonl.failed").exists()
    assert decode(out="p.jsonl") == 0
    assert Path("o.jsonl").read_bytes() == Path("p.jsonl").read_bytes()


def test_names_that_cannot_be_stop_nothing(home, capsys):
    record(home / "set/7/1/7-1-0.flac", 1000)
    Path("set/7/1/7-1-1.wav").rename("set/7/1/7-1 one.wav")
    text = "refs"
    Path(text).write_text(
        "".join(f"{s}-1-{n} x\n" for s in (7, 10) for n in range(4)) + "7-1_one y\n"
    )
    assert decode("--ref", text) == 3
    said = capsys.readouterr().err
    assert "blanks in 1 names of recordings are _ in their ids: '7-1 one' is 7-1_one" in said
    lists = {nbest.utt: nbest.ref for nbest in jsonl.read("o.jsonl")}
    assert len(lists) == 8 and lists["7-1_one"] == "y"
    assert Path("o.jsonl.failed").read_text() == (
        "set/7/1/7-1-0.wav set/7/1/7-1-0.wav: set/7/1/7-1-0.flac is called so, too; rename it\n"
    )
    assert decode("--ref", text, "--strict") == 1
    assert "7-1-0.flac is called so, too; rename it" in capsys.readouterr().err


BREAKS = {
    "gone": lambda path: path.unlink(),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "text": lambda path: path.write_text("no audio"),
    "unheard": lambda path: record(path, 6_666),  # the fake recogniser raises
    "mute": lambda path: record(path, 6_667),  # the fake recogniser has no hypothesis
    "segment": lambda path: record(path, 100),
}


@pytest.mark.parametrize("damage", BREAKS)
def test_each_kind_of_failure(home, capsys, damage):
    Path("k").mkdir()
    names = [f"set/7/1/7-1-{n}.wav" for n in range(3)]
    Path("k/wav.scp").write_text("".join(f"r{n} {name}\n" for n, name in enumerate(names)))
    if damage == "segment":
        Path("k/segments").write_text("r0 r0 0 0.2\nr1 r1 0.1 0.3\nr2 r2 0 0.2\n")
    BREAKS[damage](Path(names[1]))
    assert decode("--audio", "k") == 3
    said = capsys.readouterr().err
    assert "r1: failed: k/" in said and "Traceback" not in said
    assert max(map(len, said.splitlines())) <= 500
    assert [nbest.utt for nbest in jsonl.read("o.jsonl")] == ["r0", "r2"]
    assert decode("--audio", "k", "--strict", out="p.jsonl") == 1


def test_nothing_is_written_where_all_fail(home, capsys):
    for path in Path("set").rglob("*.wav"):
        path.write_text("no audio")
    assert decode() == 1 and not Path("o.jsonl").exists()
    assert "set: no recording can be decoded; the first, 10-1-0: set/" in capsys.readouterr().err
    assert len(Path("o.jsonl.failed").read_text().splitlines()) == 8


def test_a_recogniser_that_crashes(home, capsys):
    assert decode("--opts", "kill=7300") == 1
    said = capsys.readouterr().err
    assert "was killed by SIGKILL" in said and said.count("\n") == 1
    assert not Path("o.jsonl").exists()


def test_a_long_recording_has_a_list_a_segment(home, capsys):
    """Lists of segments, their times and session, beside lists of utterances; resumed as these."""
    record(Path("set/7/1/7-1-0.wav"), 50_000)
    assert decode() == 0
    assert "of 8 utterances, 1 of them in segments," in capsys.readouterr().err
    lists = {one.utt: one for one in jsonl.read("o.jsonl")}
    cut = [utt for utt in lists if utt.startswith("7-1-0")]
    assert cut == [f"7-1-0-000{n}" for n in (1, 2, 3, 4)] and len(lists) == 7 + 4
    assert lists["7-1-0-0003"].extra == {"session": "7-1-0", "start": "2.00", "end": "3.00"}
    assert lists["7-1-0-0003"].hyps[0].text == "word 18000 0" and lists["7-1-0-0003"].ref is None
    whole = lists["7-1-1"]  # sessions of all, or of none
    assert whole.ref == "SAID 1" and whole.extra["session"] == "7-1-1"
    segments = Path("o.jsonl.segments").read_text().splitlines()
    assert "7-1-0-0004 7-1-0 3.00 3.12" in segments  # no later than the recording
    assert f"7-1-1 7-1-1 0.00 {whole.extra['end']}" in segments
    assert "7-1-0-0001 7-1-0" in Path("o.jsonl.utt2session").read_text().splitlines()
    first = json.loads(Path("o.jsonl.windows.jsonl").read_text().splitlines()[0])
    assert first == {
        "session": "7-1-0",
        "start": 0,
        "end": 2,
        "no_speech_prob": 0.25,
        "segments": 2,
    }
    good, before = Path("o.jsonl").read_bytes(), heard()
    lines = journal().read_bytes().splitlines(keepends=True)
    assert decode() == 0 and heard() == before and Path("o.jsonl").read_bytes() == good
    journal().write_bytes(b"".join(line for line in lines if b"7-1-0-0003" not in line))
    assert decode() == 0 and heard() == before + 2 and Path("o.jsonl").read_bytes() == good
    Path("set/7/1/7-1-0.wav").unlink()
    assert decode() == 0 and not Path("o.jsonl.segments").exists()
    assert not any(nbest.extra for nbest in jsonl.read("o.jsonl"))
    record(Path("set/7/1/7-1-0.wav"), 50_000)
    record(Path("set/7/1/7-1-0-0002.wav"), 1000)
    Path("set/7/1/8.trans.txt").write_text("7-1-0-0002 X\n")
    assert decode() == 3
    assert "7-1-0: failed: 7-1-0-0002: is a segment's name and a recording's" in (
        capsys.readouterr().err
    )


def test_one_recording(home, capsys):
    """A recording in place of a directory is decoded, by its name or by its first bytes."""
    (home / "set/7/1/7-1-1.wav").rename("speech")
    assert decode("--audio", "set/7/1/7-1-0.wav") == 0
    assert decode("--audio", "speech", out="p.jsonl") == 0
    assert [nbest.utt for out in "op" for nbest in jsonl.read(f"{out}.jsonl")] == [
        "7-1-0",
        "speech",
    ]


@pytest.mark.parametrize(
    "options, said",
    [
        (("--opts", "deep=3"), "--opts deep=3: no option is called 'deep'; fake has depth, sec"),
        (("--opts", "depth=x"), "--opts depth=x: is no number; write for instance depth=7"),
        (("--opts", "depth=0"), "--opts depth: 0 (int) is not a whole number from 1"),
        (("--opts", "depth"), "--opts depth: not key=value; fake has depth, seconds, language"),
        (("--opts", "depth=1", "depth=2"), "a second one called 'depth'"),
        (("--asr", "sphinx:m"), "--asr sphinx:m: no recogniser is called so; give whisper:DIR or"),
        (("--asr", "fake"), "--asr fake: no recogniser is called so"),
        (("--asr", "fake:nowhere"), "nowhere: no model"),
        (("--audio", "nowhere"), "nowhere: no such directory, wav.scp or recording"),
        (("--audio", "m"), "m: no recordings; give a directory with *.flac, *.wav"),
        (("--out", "-"), "-: lists of speech are resumed by the name of their file"),
        (("--ref", "m/model"), "m/model: no transcript of 8 of 8 utterances (first '10-1-0')"),
    ],
)
def test_what_is_refused(home, capsys, options, said):
    assert decode(*options) == 1
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1 and heard() == 0


def test_a_package_that_is_not_there(home, capsys, monkeypatch):
    kind = recognisers.RECOGNISERS["fake"]._replace(packages=("no-such-package",))
    monkeypatch.setitem(recognisers.RECOGNISERS, "fake", kind)
    assert decode() == 1
    assert "package no-such-package is not installed; install it" in capsys.readouterr().err


def test_a_log_says_how_far_it_is(home, monkeypatch, capsys):
    monkeypatch.setattr(log, "EVERY", 0)
    record(home / "set/7/1/7-1-3.wav", fake_recogniser.RAISES)
    assert decode() == 3
    said = capsys.readouterr().err
    counts = [f"{n} of 8 ({n / 8:.0%}) utterances" for n in range(1, 9)]
    assert all(count in said for count in counts) and "7-1-3: failed: " in said
