"""What Whisper and Vosk are told, without their models."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.decode.recognisers import describe_options, parse_options
from lmtools.decode.vosk import Vosk, VoskOptions
from lmtools.decode.whisper import (
    NOTHING,
    Candidate,
    Whisper,
    WhisperOptions,
    Window,
    combine_windows,
    find_end,
    merge_equal,
    rank_rest,
)

WIDEST = "lmtools.decode.whisper.WIDEST"


@pytest.fixture
def whisper(tmp_path):
    """A function that makes one of options, in a directory with files of the right names."""
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    return lambda *opts: Whisper(str(tmp_path), parse_options(WhisperOptions, opts, "whisper"))


class FakeTokenizer:
    """Tokens 0 to 49 are words of a letter; 50 ends the text, 60 and more are times."""

    def decode(self, tokens):
        return "".join(f" {chr(97 + token)}" for token in tokens)

    def token_to_id(self, name):
        return {"<|endoftext|>": 50, "<|notimestamps|>": 59}.get(name, 51)


class FakeModel:
    """faster-whisper's model and CTranslate2's in one: `beams[beam]` has the tokens and average
    scores that a search finds, and a window is taken unless its first token is 9.
    """

    supported_languages = ("en", "de")
    is_multilingual = True
    max_length = 448
    no_speech = 0.25

    def __init__(self, windows):
        self.windows, self.asked = iter(windows), []
        self.model, self.hf_tokenizer = self, FakeTokenizer()

    def transcribe(self, samples, **options):
        self.said = options
        self.stock = SimpleNamespace(
            length_penalty=1,
            suppress_blank=True,
            suppress_tokens=(1,),
            max_initial_timestamp=1.0,
            no_speech_threshold=0.6,
            log_prob_threshold=-1.0,
        )
        return self.segments(), None

    def segments(self):
        for beams in self.windows:
            self.beams = beams
            result, mean, *_ = self.generate_with_fallback("sound", [3], None, self.stock)
            tokens = result.sequences_ids[0]
            assert mean == pytest.approx(result.scores[0] * len(tokens) / (len(tokens) + 1))
            if tokens[0] != 9:
                yield SimpleNamespace(text=FakeTokenizer().decode(t for t in tokens if t < 50))

    def generate(self, encoded, prompts, beam_size, num_hypotheses, **options):
        assert (encoded, prompts, num_hypotheses) == ("sound", [[3]], beam_size)
        assert options["max_initial_timestamp_index"] == 50 and options["suppress_tokens"] == (1,)
        self.asked.append(beam_size)
        tokens, scores = zip(*self.beams[beam_size].items(), strict=True)
        return [SimpleNamespace(sequences_ids=tokens, scores=scores, no_speech_prob=self.no_speech)]


@pytest.fixture
def hear(whisper, monkeypatch):
    """A function that decodes windows of a FakeModel, and that model."""

    def decode(windows, *opts, seconds=1, widest=32):
        monkeypatch.setattr(WIDEST, widest)
        said = {"beam": 2, "depth": 3} | dict(opt.split("=", 1) for opt in opts)
        made = whisper(*(f"{key}={value}" for key, value in said.items()))
        made.model = FakeModel(windows)
        made.check_tokens()
        return made.decode(np.zeros(16_000 * seconds, dtype=np.float32)), made.model

    return decode


def test_the_first_is_the_answer_and_the_beam_widens_until_there_are_enough(hear):
    narrow = {(0, 1): -1.0, (2,): -2.0}
    wide = {(2,): -2.0, (0, 1): -1.0, (3, 4): -0.5, (5,): -3.0}
    hyps, model = hear([{2: narrow, 8: wide}])
    assert model.asked == [2, 8] and [hyp.text for hyp in hyps] == ["a b", "d e", "c"]
    assert hyps[0].scores == {"am": -2.0, "avg": -1.0, "nospeech": 0.25, "length": 2}
    assert model.said == {
        "language": "en",
        "beam_size": 2,
        "temperature": 0,
        "without_timestamps": True,
    }


@pytest.mark.parametrize(
    "beams, asked",
    [
        ({2: {(0,): -1, (1,): -2}, 8: {(0,): -1, (1,): -2}}, [2, 8]),  # nothing new
        ({2: {(0,): -1}, 8: {(0,): -1, (1,): -2}, 32: {(2,): -1, (3,): -2}}, [2, 8, 32]),
        ({2: {(0,): -1}, 8: {(1,): -1}, 32: {(0,): -1, (1,): -2}}, [2, 8, 32]),  # as wide as may be
    ],
)
def test_searching_on_ends(hear, beams, asked):
    hyps, model = hear([beams])
    assert model.asked == asked and hyps[0].text == "a"
    assert len({hyp.text for hyp in hyps}) == len(hyps) <= 3


@pytest.mark.parametrize(
    "no_speech, score, asked", [(0.9, -4.0, [2]), (0.9, -1.0, [2, 8]), (0.5, -4.0, [2, 8])]
)
def test_silence_is_not_searched_on(hear, monkeypatch, no_speech, score, asked):
    monkeypatch.setattr(FakeModel, "no_speech", no_speech)
    _, model = hear([{2: {(0,): score}, 8: {(0,): score}}])
    assert model.asked == asked


def test_several_windows_and_silence(hear):
    one = {2: {(0,): -1.0, (1,): -2.0, (2,): -3.0}}
    hyps, model = hear([one, {2: {(9, 1): -1, (1,): -2, (2,): -3}}, one], "depth=2", seconds=31)
    assert [hyp.text for hyp in hyps] == ["a a", "a b"] and model.asked == [2, 2, 2]
    assert hyps[0].scores["am"] == pytest.approx(-2 + np.log(0.25), abs=1e-4)
    assert model.said["without_timestamps"] is False
    (silent,), _ = hear([{2: {(9, 1): -1, (1,): -2, (2,): -3}}])
    assert silent.text == "" and silent.scores["length"] == 0
    (nothing,), _ = hear([])
    assert nothing.text == ""
    assert nothing.scores == {"am": 0, "avg": 0, "nospeech": 1, "length": 0}


@pytest.mark.parametrize("seconds, without", [(30, True), (31, False)])
def test_timestamps(hear, seconds, without):
    _, model = hear([{2: {(0,): -1.0, (1,): -2.0, (2,): -3.0}}], seconds=seconds)
    assert model.said["without_timestamps"] is without


def test_hypotheses_end_where_the_first_does(hear):
    times = 60 + np.arange(200)
    first = (times[0], 0, times[50], times[60], 1)  # the next window begins at token of time 50
    near = (times[0], 2, times[70], times[80], 3)
    far = (times[0], 4, times[150], times[160])
    whole = (times[0], 5, times[50])
    beams = {8: dict.fromkeys((first, near, far, whole), -1.0)}
    hyps, _ = hear([{2: beams[8], **beams}], seconds=31, widest=8)
    # of the first, faster-whisper says what it takes; the fake takes all
    assert [hyp.text for hyp in hyps] == ["a b", "c"]
    assert find_end([60, 0, 61, 62, 63, 1, 64], 60) == (7, None)
    assert find_end([0, 1], 60) == find_end([60, 1], 60) == (2, None)


def test_depth_is_within_the_widest_beam(whisper):
    with pytest.raises(UserError, match=r"--opts depth=90: more than a beam of 80 holds; "):
        whisper("beam=5", "depth=90")
    assert whisper("beam=90", "depth=90").options.depth == 90


def test_a_language_that_is_not_known(hear):
    assert hear([], "language=auto")[1].said["language"] is None
    assert hear([], "language=de")[1].said["language"] == "de"
    with pytest.raises(
        UserError, match=r"--opts language=xx: .* has no such language; give a code"
    ):
        hear([], "language=xx")


def test_a_directory_without_a_model(tmp_path):
    with pytest.raises(UserError, match=r"no model\.bin; give a Whisper model of CTranslate2"):
        Whisper(str(tmp_path))
    with pytest.raises(UserError, match=r"no am/final\.mdl; give a directory with a model of Vosk"):
        Vosk(str(tmp_path))


def test_vosk_reads_our_options(tmp_path):
    model, place = tmp_path / "model", tmp_path / "place"
    for name in ("am/final.mdl", "graph/HCLr.fst", "conf/mfcc.conf", "conf/model.conf"):
        (model / name).parent.mkdir(parents=True, exist_ok=True)
        (model / name).write_text("")
    (model / "conf/mfcc.conf").write_text("--use-energy=false\n--sample-frequency=8000\n")
    own = "--min-active=200\n--beam=10.0\n--max-active=3000\n--acoustic-scale=1.0\n"
    (model / "conf/model.conf").write_text(own)
    vosk = Vosk(str(model), parse_options(VoskOptions, ["beam=11", "depth=5"], "vosk"))
    assert vosk.rate == 8000
    place.mkdir()
    vosk.with_options(place)
    assert (place / "conf/model.conf").read_text().split() == [
        "--min-active=200",
        "--acoustic-scale=1.0",
        "--beam=11.0",
        "--max-active=7000",
        "--lattice-beam=8.0",
    ]
    assert (place / "am/final.mdl").exists() and (place / "conf/mfcc.conf").read_text()
    assert (model / "conf/model.conf").read_text() == own


def test_options_explain_themselves():
    for options in (WhisperOptions, VoskOptions):
        assert "depth: most hypotheses of a list" in describe_options(options)


def candidate(text: str, am: float, length: int = 1) -> Candidate:
    return Candidate(text, am, length)


def test_equal_words_are_merged_into_the_first():
    made = merge_equal(
        [
            candidate(" Hello, you.", -1.0, 4),
            candidate("hello you", -2.0),
            candidate(" Hello", -3.0),
        ]
    )
    assert [(one.text, one.am, one.length) for one in made] == [
        (" Hello, you.", -1.0, 4),
        (" Hello", -3.0, 1),
    ]


def test_the_first_stays_and_the_others_are_ranked_by_token():
    answer, long, short = candidate("a", -9.0), candidate("b", -6.0, 6), candidate("c", -2.0, 1)
    assert rank_rest([answer, short, long]) == [answer, long, short]
    assert rank_rest([]) == []


def test_windows_have_the_best_combinations():
    windows = [[candidate("A", -1.0), candidate(" B", -2.0)]]
    windows += [[candidate(" c", -0.5), candidate("d", -0.75), candidate("e", -3.0)]]
    whole = combine_windows(windows, 3)
    assert [(" ".join(one.text.split()), one.am, one.length) for one in whole] == [
        ("A c", -1.5, 2),
        ("A d", -1.75, 2),
        ("B c", -2.5, 2),
    ]
    assert len(combine_windows(windows, 20)) == 6


def test_no_window_is_nothing_and_silence_has_its_probability():
    assert combine_windows([], 5) == [NOTHING]
    one, other = (Window([], no_speech).heard() for no_speech in (0.5, 0.0))
    (whole,) = combine_windows([one, [candidate("a", -1.0)], other], 5)
    assert whole.text.split() == ["a"] and whole.length == 1
    assert whole.am == pytest.approx(math.log(0.5) - 1 + math.log(1e-10))
