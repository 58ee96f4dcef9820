"""What Whisper and Vosk are told, without their models."""

from types import SimpleNamespace

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.decode.recognisers import describe_options, parse_options
from lmtools.decode.vosk import Vosk, VoskOptions
from lmtools.decode.whisper import Candidate, Whisper, WhisperOptions, merge_equal, rank_rest


@pytest.fixture
def whisper(tmp_path):
    """A function that makes one of options, in a directory with files of the right names."""
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    return lambda *opts: Whisper(str(tmp_path), parse_options(WhisperOptions, opts, "whisper"))


class FakeTokenizer:
    """A token is a letter of the alphabet: a word; 50 ends the text."""

    non_speech_tokens = ()
    transcribe = translate = sot = sot_prev = sot_lm = no_speech = 60

    def decode(self, tokens):
        return "".join(f" {chr(97 + token)}" for token in tokens if token < 50)


@pytest.fixture
def hear(whisper, monkeypatch):
    """A function that decodes what CTranslate2's search answers: scores a token by tokens, one
    dict for all beams or one each of those `beams` that it has to ask for.
    """

    def decode(found, *opts, no_speech=0.25, beams=(20, 80), drawn=None):
        made = whisper("vad=false", *opts)
        made.model = SimpleNamespace(get_prompt=lambda *args, **options: [7, *options.values()])
        answers = iter([found] * len(beams) if isinstance(found, dict) else found)
        asked = []

        def generate(self, prompts, encoded, tokenizer, beam):
            assert (prompts, encoded) == ([[7, True]], "sound")
            asked.append(beam)
            one = next(answers)
            return [
                SimpleNamespace(
                    sequences_ids=list(one), scores=list(one.values()), no_speech_prob=no_speech
                )
            ]

        monkeypatch.setattr(Whisper, "encode", lambda *args: ("sound", 100))
        monkeypatch.setattr(Whisper, "make_tokenizer", lambda *args: FakeTokenizer())
        monkeypatch.setattr(Whisper, "generate", generate)
        monkeypatch.setattr(Whisper, "draw", lambda *args, seed: drawn)
        hyps = made.decode(np.zeros(16_000, dtype=np.float32))
        assert asked == list(beams)
        return hyps

    return decode


def test_the_first_is_the_answer_and_others_follow_by_token(hear):
    hyps = hear({(0, 1): -1.0, (2,): -2.0, (3, 4): -0.5, (0, 1, 50): -0.25})
    assert [hyp.text for hyp in hyps] == ["a b", "d e", "c"]
    assert hyps[0].scores == {"am": -2.0, "avg": -1.0, "nospeech": 0.25, "length": 2}
    assert len(hear({(0,): -1, (1,): -2, (2,): -3}, "depth=2", beams=[20])) == 2


@pytest.mark.parametrize(
    ("found", "beams", "texts"),
    [
        ([{(0,): -1, (1,): -2}, {(2,): -0.5, (1,): -2}], [2, 8], "acb"),  # enough
        ([{(0,): -1, (1,): -2}, {(0,): -1, (1,): -2}], [2, 8], "ab"),  # nothing new
        ([{(0,): -1}, {(1,): -2}, {(0,): -1}], [2, 8, 32], "ab"),
    ],
)
def test_the_beam_widens_until_there_are_enough(hear, found, beams, texts):
    hyps = hear(found, "beam=2", "depth=3", beams=beams)
    assert "".join(hyp.text for hyp in hyps) == texts


LOOP = tuple([1] * 90)
SAMPLE = {
    "a": ((0,), -0.5, 0.4, 1.0),
    "no": ((3,), -1.5, 0.2, 1.0),
    "worse": (LOOP, -3.0, 1.0, 9.0),
}


@pytest.mark.parametrize(
    "no_speech, found, sample, texts",
    [
        (0.9, {(0,): -4.0, (1,): -5.0}, None, [""]),
        (0.9, {(0,): -1.0, (1,): -2.0}, None, ["a", "b"]),
        (0.5, {(4,): -4.0, (1,): -5.0}, "a", ["a", "e", "b"]),  # improbable: a sample is first
        (0.5, {LOOP: -0.1, (4,): -4.0}, "a", ["a", "e"]),  # a loop is in no list
        (0.9, {LOOP: -0.1, (4,): -4.0}, "no", [""]),  # what is drawn is silence, as 8 s of zeros
        (0.5, {(4,): -4.0, (1,): -5.0}, "worse", ["e", "b"]),
        (0.5, {(4,): -4.0, (1,): -5.0}, "no", ["d", "e", "b"]),  # the more probable
    ],
)
def test_what_faster_whisper_drops_and_draws_again(hear, no_speech, found, sample, texts):
    drawn = None
    if sample:
        tokens, average, temperature, ratio = SAMPLE[sample]
        one = SimpleNamespace(sequences_ids=[tokens], scores=[average])
        drawn = one, average, temperature, ratio
    beams = (20,) if texts == [""] else (20, 80)
    hyps = hear(found, no_speech=no_speech, beams=beams, drawn=drawn)
    assert [hyp.text for hyp in hyps] == texts
    if texts == [""]:
        assert hyps[0].scores["am"] == pytest.approx(np.log(no_speech), abs=1e-4)


def test_an_empty_answer_is_silence(hear):
    (only,) = hear({(50,): -0.1, (1,): -2.0}, no_speech=0.0, beams=[20])
    assert only.text == "" and only.scores["am"] == pytest.approx(np.log(1e-10), abs=1e-4)


def test_a_language_that_is_not_known(whisper):
    for language in ("auto", "de"):
        made = whisper(f"language={language}")
        made.model = SimpleNamespace(
            supported_languages=("en", "de"),
            hf_tokenizer=SimpleNamespace(token_to_id=lambda name: 5),
            model=SimpleNamespace(is_multilingual=True),
        )
        made.check_tokens()
    made.options = WhisperOptions(language="xx")
    with pytest.raises(
        UserError, match=r"--opts language=xx: .* has no such language; give a code"
    ):
        made.check_tokens()


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
