"""Forced scores of texts: those of CTranslate2's own search, whose exponential is approximate."""

import numpy as np
import pytest
from tiny_whisper import SUPPRESSED, write_model

from lmtools.base.errors import UserError
from lmtools.decode.forced import Forced
from lmtools.decode.whisper import Whisper, WhisperOptions
from lmtools.decode.windows import decode_recording

ctranslate2 = pytest.importorskip("ctranslate2")
END, PROMPT, WIDE = 256, [257, 263], 12


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Encoded sound, the tokens that a search finds, their scores, and the decoder."""
    home = write_model(tmp_path_factory.mktemp("whisper"))
    model = ctranslate2.models.Whisper(str(home), compute_type="float32")
    mel = np.random.default_rng(3).standard_normal((1, 80, 3000)).astype(np.float32)
    encoded = model.encode(ctranslate2.StorageView.from_array(mel))
    (found,) = model.generate(
        encoded, [PROMPT], beam_size=WIDE, num_hypotheses=WIDE, length_penalty=0,
        return_scores=True, max_length=40,
    )  # fmt: skip
    forced = Forced(home, SUPPRESSED, [20], END)
    return np.asarray(encoded)[0], found.sequences_ids, found.scores, forced


def test_a_text_has_the_score_that_the_search_gave_it(searched):
    encoded, texts, scores, forced = searched
    assert len({tuple(text) for text in texts}) == WIDE
    for text, score, made in zip(
        texts, scores, forced.log_probs(encoded, PROMPT, texts), strict=True
    ):
        ended = len(text) < 20  # a search of 40 gives a text at most half of that
        assert made[: len(made) if ended else -1].sum() == pytest.approx(
            score, abs=2e-4 * len(made)
        )


def test_company_changes_nothing(searched, monkeypatch):
    encoded, texts, _, forced = searched
    together = forced.log_probs(encoded, PROMPT, texts)
    monkeypatch.setattr("lmtools.decode.forced.NODES", 1)
    for one, other in zip(together, forced.log_probs(encoded, PROMPT, texts), strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_what_a_search_never_takes_has_a_score(searched):
    encoded, _, _, forced = searched
    (empty, odd) = forced.log_probs(encoded, PROMPT, [[], [SUPPRESSED[0], 30]])
    assert empty.shape == (1,) and odd.shape == (3,)
    assert np.isfinite(empty).all() and np.isfinite(odd).all()


def test_what_is_refused(searched, tmp_path):
    encoded, _, _, forced = searched
    with pytest.raises(UserError, match="a text of 447 tokens; cut the recording"):
        forced.log_probs(encoded, PROMPT, [[30] * 447])
    (tmp_path / "model.bin").write_bytes(b"\6\0\0\0\5\0none\0")
    with pytest.raises(UserError, match="not a decoder as CTranslate2 4 writes it"):
        Forced(tmp_path, [], [], END)


def test_what_is_drawn_after_a_kill_is_what_was_drawn(tmp_path):
    """Each window of a model of random weights is improbable, so that it is drawn again."""
    pytest.importorskip("faster_whisper", reason="faster-whisper is not installed")
    home = str(write_model(tmp_path))
    noise = [np.random.default_rng(1).standard_normal(16_000 * 100).astype(np.float32)]
    options = WhisperOptions(vad=False)
    whole = list(decode_recording(Whisper(home, options, device="cpu").load(), noise))
    assert len(whole) > 3 and all(window.marks["temperature"] > 0 for window in whole)
    rest = decode_recording(
        Whisper(home, options, device="cpu").load(), noise, state=whole[1].state
    )
    assert [window.search.tokens for window in rest] == [one.search.tokens for one in whole[2:]]
