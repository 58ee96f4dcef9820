"""Recordings of any length by a Whisper without a model: windows, segments and their lists."""

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from lmtools.decode import segments, silence, windows
from lmtools.decode.whisper import HOP, MARGIN, Whisper, WhisperOptions
from lmtools.decode.windows import Sound, cut_tokens, decode_recording

pytest.importorskip("faster_whisper", reason="faster-whisper is not installed")
EOT, TIME = 100, 200  # tokens below EOT are words: 7 is " w7"; TIME + n is n * 0.02 s
RATE = 16_000


class FakeTokenizer:
    eot, timestamp_begin, sot, no_timestamps, language_code = EOT, TIME, 101, 102, "en"
    transcribe = translate = sot_prev = sot_lm = no_speech = 103
    non_speech_tokens = ()

    def decode(self, tokens):
        return "".join(f" w{token}" for token in tokens if token < EOT)

    def encode(self, text):
        return [int(word[1:]) for word in text.split()]

    def split_to_word_tokens(self, tokens):
        return [f" w{token}" for token in tokens], [[token] for token in tokens]


class FakeWhisper:
    """What is heard is a function of the samples: their first value is the number of the answer in
    `answers`, each the hypotheses' tokens, the first one's average, and no_speech.
    """

    rate, options = RATE, WhisperOptions(depth=8, vad=False)

    def __init__(self, answers, probability=0.9, branches=()):
        self.answers, self.probability, self.branches = answers, probability, list(branches)
        self.prompts, self.model, self.forced = [], self, self

    def find_features(self, samples, before):
        return np.full((1, min(len(samples) // HOP, 3000)), samples[0])

    def encode_features(self, features, loudest):
        self.now = round(float(features[0, 0]))
        return np.zeros((1, 1500, 2), np.float32)

    def make_tokenizer(self, language, encoded):
        return FakeTokenizer()

    def hear_languages(self, encoded):
        return {"en": 0.9, "de": 0.1}

    def get_prompt(self, tokenizer, told, without_timestamps=False):
        return [*([103, *told] if told else []), 101, *([102] if without_timestamps else [])]

    def generate(self, prompts, encoded, tokenizer, beam, most=0):
        if most:
            found = [SimpleNamespace(sequences_ids=self.branches) for _ in prompts]
            assert np.asarray(encoded).shape[0] == len(prompts)
            return found
        self.prompts += prompts
        tokens, average, no_speech = self.answers[self.now]
        scores = [average] * len(tokens)
        return [SimpleNamespace(sequences_ids=tokens, scores=scores, no_speech_prob=no_speech)]

    def draw(self, encoded, prompt, tokenizer, options, seed):
        assert options.temperatures[0] == 0.2
        return SimpleNamespace(sequences_ids=[self.again]), -0.3, 0.4, 1.0

    def find_alignment(self, tokenizer, texts, encoded, steps):
        probability = self.probability
        return [
            [
                {"word": f" w{token}", "tokens": [token], "start": 0.5 * n, "end": 0.5 * n + 0.4,
                 "probability": probability(token) if callable(probability) else probability}
                for n, token in enumerate(tokens)
            ]
            for tokens in texts
        ]  # fmt: skip

    def log_probs(self, encoded, prompt, texts):
        assert encoded.shape == (1500, 2)
        return [np.array([-token / 1000 for token in [*text, EOT]]) for text in texts]


def t(seconds):
    return TIME + round(seconds / 0.02)


def sound(*parts):
    """Samples of (answer, seconds)."""
    return np.concatenate([np.full(round(RATE * s), n, np.float32) for n, s in parts])


ONE = ([[t(0), 1, 2, t(4), t(4), 3, t(20), t(20)]], -0.1, 0.1)  # ends at 20 s of its window
REST = ([[t(0), 5, t(2), t(2), 6, t(9)]], -0.1, 0.1)


def test_where_a_window_ends():
    def cut(*tokens, steps=3000):
        return cut_tokens(tokens, steps, FakeTokenizer())

    parts, ahead = cut(*ONE[0][0])
    spans = [(part.start, part.end, part.begin, part.stop) for part in parts]
    assert spans == [(0, 200, 0, 4), (200, 1000, 4, 7)] and ahead == 2000
    parts, ahead = cut(*REST[0][0], steps=1000)  # a last time alone: all of it was said
    assert [part.stop for part in parts] == [3, 6] and ahead == 1000
    parts, ahead = cut(1, 2, steps=500)
    assert (parts[0].end, parts[0].stop, ahead) == (250, 2, 500)
    assert cut(steps=500) == ([], 500)
    assert cut(t(0), t(0), 1, steps=500)[1] == 500  # goes on in any case


def test_a_recording_in_windows_and_from_any_state():
    samples = sound((0, 20), (0, 20), (1, 10))
    found = list(decode_recording(FakeWhisper([ONE, REST]), [samples]))
    assert [(one.start, one.end) for one in found] == [(0, 20), (20, 40), (40, 50)]
    spans = [(s.start, s.end, s.hyps[0].text) for one in found for s in one.segments]
    assert spans[2:] == [(20, 24, "w1 w2"), (24, 40, "w3"), (40, 42, "w5"), (42, 49, "w6")]
    assert found[-1].state is None and found[0].language == "en"
    (word, *_) = found[2].word_times(found[2].segments[1], "w6")
    assert word == ("w6", 42, 42, 0.9)  # heard before its segment begins
    assert [one[0] for one in found[0].word_times(found[0].segments[1], "w8 w9")] == ["w8", "w9"]
    blocks = np.array_split(samples, 97)
    for place, state in enumerate(one.state for one in found[:-1]):
        state = json.loads(json.dumps(state))
        model = FakeWhisper([ONE, REST])
        rest = list(decode_recording(model, iter(blocks), state=state))
        assert [(one.start, one.segments, one.state) for one in rest] == [
            (one.start, one.segments, one.state) for one in found[place + 1 :]
        ]
        assert 1 in model.prompts[0] and model.prompts[0][-1] == FakeTokenizer.sot
    model = FakeWhisper([ONE, REST])
    next(decode_recording(model, [samples], prompt="w9 w8"))
    assert model.prompts == [[103, 9, 8, 101]]
    (short,) = decode_recording(FakeWhisper([ONE, REST]), [sound((1, 8))])
    assert short.segments[1].end == 8 and len(short.sound_of(short.segments[1])) == 6 * RATE


def test_sound_holds_a_window_and_its_margins():
    held = Sound((np.full(1000, n, np.float32) for n in range(500)), 5000)
    for turn in range(90):
        assert len(held.peek()) == 5000 + MARGIN and len(held.held) < 5000 + MARGIN + 1000
        assert len(held.before) == (MARGIN if turn else 0)
        held.skip(5432)
    held.skip(10**9)
    assert not len(held.peek())


class FeaturesAlone(Whisper):
    """Whisper without a model, whose encoder keeps what it is given."""

    def __post_init__(self):
        from faster_whisper.feature_extractor import FeatureExtractor

        self.model = SimpleNamespace(
            feature_extractor=FeatureExtractor(), encode=lambda features: features
        )


@pytest.mark.parametrize("cuts", [[0], [0, 14, 2104, 4402], [0, 3000, 6000]])
def test_features_of_windows_are_those_of_the_whole_recording(cuts):
    draw = np.random.default_rng(4)
    loudness = np.repeat([1e-6, 0.2, 0, 1e-3, 1, 1e-5, 0.3], 16_000 * 10)[:1_080_777]
    samples = (loudness * draw.standard_normal(len(loudness))).astype(np.float32)
    model = FeaturesAlone("")
    whole = model.model.feature_extractor(samples)
    blocks = np.array_split(samples, 61)
    loudest = windows.find_loudest(model, blocks)
    assert loudest == pytest.approx(whole[:, :-1].max(), abs=1e-6)
    heard = Sound(blocks, 30 * RATE)
    for at, last in itertools.pairwise([0, *cuts]):
        heard.skip((last - at) * HOP)
        features = model.find_features(heard.peek(), heard.before)
        found = model.encode_features(features, loudest)
        wanted = whole[:, :-1][:, last : last + 3000]
        assert features.shape == wanted.shape
        assert np.abs(found[:, : features.shape[1]] - wanted).max() < 1e-5


def test_silence_has_a_window_and_no_segment():
    silent = ([[t(0), 1, t(9), t(9)]], -3.0, 0.9)
    first, second = decode_recording(FakeWhisper([silent, REST]), [sound((0, 30), (1, 10))])
    assert first.segments == [] and first.marks["no_speech_prob"] == 0.9
    assert second.start == 30 and len(second.segments) == 2


@pytest.fixture
def detector(monkeypatch):
    """A voice activity detector for which samples are probabilities."""

    def run(_, given):
        return given["input"][:, -1:], given["h"], given["c"]

    model = SimpleNamespace(session=SimpleNamespace(run=run))
    monkeypatch.setattr("faster_whisper.vad.get_vad_model", lambda: model)


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ([(0, 8)], []),
        ([(0, 0.1)], []),
        ([(0, 5), (1, 0.1), (0, 9)], []),  # a click
        ([(1, 0.1)], []),
        ([(0, 1.8), (1, 3), (0, 1.8)], [(0, 6.6)]),  # short pauses stay
        ([(0, 6.4), (1, 3.2), (0, 6.4)], [(6, 10)]),
        ([(1, 3.2), (0, 40), (1, 3.2), (0, 1.6), (1, 1.6)], [(0, 3.6), (42.8, 49.6)]),
        ([(1, 3.2), (0.4, 4.8), (0, 1.6), (0.4, 1.6), (0, 1.6)], [(0, 8.4)]),  # may go on
        ([(0, 30)] * 2 + [(1, 3.2)], [(59.6, 63.2)]),  # a recording that ends in speech
    ],
)
def test_pauses_are_left_out(detector, parts, kept):
    samples = sound(*parts)
    samples[::512] += np.arange(len(samples[::512]), dtype=np.float32)  # none of it is judged
    for blocks in ([samples], np.array_split(samples, 1 + len(samples) // 999)):
        spoken = silence.SpokenSound(blocks, vad=True)
        for _ in range(2):
            found = np.concatenate([np.zeros(0, np.float32), *spoken])
            wanted = [samples[round(a * RATE) : round(b * RATE)] for a, b in kept]
            assert np.array_equal(found, np.concatenate([found[:0], *wanted]))
            assert spoken.total == len(samples)
        left = 0.0
        for start, end in kept:
            assert spoken.time(left) == pytest.approx(start)
            assert spoken.time(left := left + end - start, end=True) == pytest.approx(end)


def test_times_are_those_of_the_whole_recording(detector):
    samples = sound((0, 16), (1, 8), (0, 48), (1, 11.2), (0, 30))  # 19.6 to 24.4, 71.6 to ..
    model = FakeWhisper([ONE, ONE])
    model.options = WhisperOptions(depth=2)
    found = list(decode_recording(model, [samples]))
    assert [(one.start, one.end) for one in found] == [(15.6, 82.8), (82.8, 113.2)]
    spans = [(one.start, one.end) for window in found for one in window.segments]
    assert spans == [(15.6, 19.6), (19.6, 82.8), (82.8, 83.6)]  # the last begins in the sound
    times = [
        time for _, *times, _ in found[0].word_times(found[0].segments[1], "w3") for time in times
    ]
    assert times == [19.6, 19.6] and found[1].state is None
    assert len(found[1].sound_of(found[1].segments[0])) == 0.8 * RATE
    (nothing,) = decode_recording(model, [sound((0, 0.1))])
    assert (nothing.end, nothing.segments, nothing.state) == (0.1, [], None)
    (rest,) = decode_recording(model, [samples], state=found[0].state)
    assert (rest.start, rest.end) == (82.8, 113.2)


def test_words_keep_to_their_segment_and_sentences_to_themselves():
    search = SimpleNamespace(at=0, model=SimpleNamespace(rate=RATE), time=lambda seconds: seconds)
    segment = segments.SpokenSegment(1.0, 9.0, [], 0)
    timed = [(" One,", 0, 4, 1), (" two", 3.9, 4.2, 1), (" three.", 4.2, 8, 1), (" Four", 8, 30, 1)]
    found = list(segments.WindowSearch.fit_times(search, segment, timed))
    times = [(word, round(start, 3), round(end, 3)) for word, start, end, _ in found]
    assert times == [("One,", 2.6, 4), ("two", 4, 4.2), ("three.", 4.2, 5.6), ("Four", 9, 9)]


def test_a_loop_is_decoded_again_and_marked():
    loop = ([[t(0), *[1] * 90, t(9), t(9)]], -0.1, 0.1)
    model = FakeWhisper([loop])
    model.again = [t(0), 4, t(9), t(9)]
    window, *_ = decode_recording(model, [sound((0, 9))])
    assert [one.hyps[0].text for one in window.segments] == ["w4"]
    assert (window.marks["temperature"], window.marks["avg_logprob"]) == (0.4, -0.3)
    assert window.state is None
    model.again = [t(0), *[2] * 90, t(9), t(9)]
    kept = model.draw
    model.draw = lambda *args, **more: (*kept(*args, **more)[:2], 1.0, 9.0)
    window, *_ = decode_recording(model, [sound((0, 9))])  # none is better: the more probable
    assert window.marks["temperature"] in (0.0, 1.0) and window.segments


def test_alternatives_are_local_joined_and_scored():
    """Other hypotheses differ in places; each segment gets its own, with pairs of them."""
    own = [t(0), 1, 2, 3, 4, 5, t(4), t(4), 11, 12, t(20), t(20)]
    other = [t(0), 1, 22, 3, 4, 5, t(5), t(5), 11, 12, t(20), t(20)]
    more = [t(0), 1, 2, 3, 44, 5, t(4), t(4), 11, 13, 12, t(20)]
    (window, *_) = decode_recording(
        FakeWhisper([([own, other, more], -0.1, 0.1)]), [sound((0, 20))]
    )
    first, second = window.segments
    texts = ["w1 w2 w3 w4 w5", "w1 w22 w3 w4 w5", "w1 w2 w3 w44 w5", "w1 w22 w3 w44 w5"]
    assert [hyp.text for hyp in first.hyps] == texts
    assert [hyp.text for hyp in second.hyps] == ["w11 w12", "w11 w13 w12"]
    sums = [sum(int(word[1:]) for word in text.split()) + t(0) + t(4) for text in texts]
    assert [hyp.scores["am"] for hyp in first.hyps] == [-total / 1000 for total in sums]
    assert first.hyps[0].scores["length"] == 7
    assert math.isclose(first.hyps[0].scores["avg"], -sums[0] / 7000, abs_tol=1e-4)


def test_words_that_go_on_in_the_next_segment_are_cut():
    """A segment may begin in a word, have a mark alone, or no text in Unicode."""
    own = [t(0), 1, 2, t(4), t(4), 3, t(8), t(8), 4, 5, t(9), t(9), 6, t(10), t(10)]
    model, parted = FakeWhisper([([own], -0.1, 0.1)]), [(1,), (2, 3, 4), (5,)]
    model.find_alignment = lambda *_: [
        [{"word": FakeTokenizer().decode(tokens), "tokens": list(tokens), "start": 0.5 * n,
          "end": 0.5 * n + 0.4, "probability": 0.9} for n, tokens in enumerate(parted)]
    ]  # fmt: skip
    (window, *_) = decode_recording(model, [sound((0, 10))])
    assert [one.hyps[0].text for one in window.segments] == ["w1 w2", "w3", "w4 w5", "w6"]
    timed = [window.word_times(one, one.hyps[0].text) for one in window.segments[:3]]
    assert [[word for word, *_ in some] for some in timed] == [["w1", "w2"], ["w3"], ["w4", "w5"]]


def test_doubtful_words_are_searched(monkeypatch):
    """A search from a doubtful word hears from there; a difference at its end is none."""
    monkeypatch.setattr(segments, "AHEAD", 4)
    own = [t(0), *range(1, 13), t(20), t(20)]
    model = FakeWhisper(
        [([own], -0.1, 0.1)], lambda token: 0.2 if token in (6, 8) else 0.95, [(66, 7, 8, 90)]
    )
    (window, *_) = decode_recording(model, [sound((0, 20))])
    texts = [hyp.text for hyp in window.segments[0].hyps]
    assert texts == [" ".join(f"w{n}" for n in range(1, 13)), texts[0].replace("w6", "w66")]


def test_marks_are_as_faster_whisper_has_them():
    result = SimpleNamespace(sequences_ids=[[1, 2, 3]], scores=[-0.4], no_speech_prob=0.5)
    marks = silence.mark(result, FakeTokenizer())
    assert marks["avg_logprob"] == pytest.approx(-0.4 * 3 / 4) and marks["temperature"] == 0
