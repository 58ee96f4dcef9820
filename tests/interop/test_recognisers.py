"""Two utterances of LibriSpeech's test-other decoded for real by Whisper and by Vosk, compared with
lists that the same models made elsewhere.

Models are those that utils/install_asr.sh fetches, in tools/asr or where LMTOOLS_WHISPER and
LMTOOLS_VOSK say; recordings and lists lie beside the repository, or where LMTOOLS_SPEECH says.
"""

import json
import os
from importlib import metadata
from pathlib import Path

import pytest

from lmtools.asr.recognisers import RECOGNISERS
from lmtools.cli import main
from lmtools.formats import jsonl

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("LMTOOLS_SPEECH") or ROOT.parent / "shared/data")
MODELS = {
    "whisper": Path(os.environ.get("LMTOOLS_WHISPER") or ROOT / "tools/asr/whisper-base"),
    "vosk": Path(os.environ.get("LMTOOLS_VOSK") or ROOT / "tools/asr/vosk-small"),
}
LISTS = {
    "whisper": "nbest/real/test-other-100.whisper-base.jsonl",
    "vosk": "nbest/real/test-other-100.vosk-small.jsonl",
}
UTTERANCES = ("1688-142285-0000", "2609-156975-0003")


def need(name: str) -> None:
    """Skip, saying why, without the packages, the model or the recordings."""
    for package in RECOGNISERS[name].packages:
        try:
            metadata.version(package)
        except metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed (utils/install_asr.sh)")
    if not MODELS[name].is_dir():
        pytest.skip(f"{MODELS[name]} is not there (utils/install_asr.sh, LMTOOLS_{name.upper()})")
    if not (DATA / "speech").is_dir():
        pytest.skip(f"no recordings in {DATA}/speech (LMTOOLS_SPEECH)")


@pytest.fixture
def decoded(tmp_path):
    """A function that decodes the two: the lists by utterance, ours and those of the data."""

    def decode(name: str, *opts: str):
        need(name)
        (tmp_path / "audio").mkdir()
        for utt in UTTERANCES:
            (tmp_path / f"audio/{utt}.flac").symlink_to(DATA / f"speech/{utt}.flac")
        out = tmp_path / "out.jsonl"
        words = ["--audio", tmp_path / "audio", "--out", out, *opts]
        words += ["--ref", DATA / "librispeech/test-other.text", "--nj", 2]
        assert main(["decode", "--asr", f"{name}:{MODELS[name]}", *map(str, words)]) == 0
        with open(DATA / LISTS[name]) as lines:
            known = {tree["utt"]: tree for tree in map(json.loads, lines)}
        return {one.utt: one for one in jsonl.read(out)}, known

    return decode


def scores(hyps) -> dict[str, float]:
    """The best score of each text."""
    best: dict[str, float] = {}
    for text, score in hyps:
        best[text] = max(score, best.get(text, score))
    return best


def test_whisper_gives_the_lists_that_are_known(decoded):
    ours, known = decoded("whisper")
    assert set(ours) == set(UTTERANCES)
    for utt in UTTERANCES:
        assert ours[utt].ref.lower() == known[utt]["ref"]
        mine = scores((hyp.text, hyp.scores["am"]) for hyp in ours[utt].hyps)
        theirs = scores((hyp["text"], hyp["scores"]["am"]) for hyp in known[utt]["hyps"])
        assert len(ours[utt].hyps) == 20 and next(iter(mine)) == next(iter(theirs))
        # int8 rounds otherwise on other processors
        both = mine.keys() & theirs.keys()
        assert len(both) >= 0.8 * len(theirs)
        assert all(mine[text] == pytest.approx(theirs[text], abs=0.05) for text in both)


def test_vosk_gives_the_lists_that_are_known(decoded):
    ours, known = decoded("vosk")
    for utt in UTTERANCES:
        mine = {hyp.text: hyp.scores["am"] for hyp in ours[utt].hyps}
        theirs = {hyp["text"]: hyp["scores"]["am"] for hyp in known[utt]["hyps"]}
        # its dither is random, and began elsewhere with other numbers
        both = mine.keys() & theirs.keys()
        assert len(mine) == 50 and len(both) >= 35
        assert next(iter(mine)) == next(iter(theirs))
        assert all(mine[text] == pytest.approx(theirs[text], abs=3) for text in both)


def test_whisper_may_write_as_it_likes(decoded):
    ours, _ = decoded("whisper", "--opts", "tokens=.*", "beam=5", "depth=5")
    assert all(len(one.hyps) == 5 for one in ours.values())
    assert any(c.isupper() for c in ours[UTTERANCES[0]].hyps[0].text)
