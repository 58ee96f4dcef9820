"""Lattices of a real decode by pocketsphinx of a sentence that flite speaks."""

import shutil
import subprocess
import wave

import pytest

from lmtools.formats import lattices

pocketsphinx = pytest.importorskip("pocketsphinx", reason="pocketsphinx is not installed")
pytestmark = pytest.mark.skipif(not shutil.which("flite"), reason="flite is not installed")


@pytest.fixture(scope="module")
def decoded(tmp_path_factory):
    """A directory with x.lat and htk.slf of one utterance, and the decoder's segments."""
    place = tmp_path_factory.mktemp("decoded")
    subprocess.run(
        ["flite", "-voice", "slt", "-t", "go forward ten meters", "-o", place / "x.wav"],
        check=True,
        capture_output=True,
    )
    decoder = pocketsphinx.Decoder(loglevel="FATAL")
    with wave.open(str(place / "x.wav")) as speech:
        assert (speech.getframerate(), speech.getnchannels()) == (16000, 1)
        decoder.start_utt()
        decoder.process_raw(speech.readframes(speech.getnframes()), full_utt=True)
        decoder.end_utt()
    lattice = decoder.get_lattice()
    lattice.write(str(place / "x.lat"))
    lattice.write_htk(str(place / "htk.slf"))
    return place, [segment.word for segment in decoder.seg()], decoder.hyp().hypstr.split()


def test_both_forms_are_the_same_lattice(decoded):
    place, _, _ = decoded
    (own,), (slf,) = lattices.read(place / "x.lat"), lattices.read(place / "htk.slf")
    assert own.words == slf.words and len(own.words) > 100
    assert (
        (own.source == slf.source).all()
        and (own.target == slf.target).all()
        and (own.times == slf.times).all()
    )
    assert slf.scores["am"] == pytest.approx(own.scores["am"], abs=1e-2)
    # an arc leads from a word's begin to its end
    assert (own.times[own.source] < own.times[own.target]).all()


def test_the_decoders_own_path_is_in_it(decoded):
    place, segments, words = decoded
    (lattice,) = lattices.read(place / "x.lat")
    at = {lattice.start}
    for segment in segments[:-1]:
        symbols = [
            (word or symbol) + (f"({variant})" if variant else "")
            for word, symbol, variant in zip(
                (word for word in lattice.words),
                *(lattice.extra[name] for name in ("symbol", "variant")),
                strict=True,
            )
        ]
        at = {
            int(lattice.target[arc])
            for arc, symbol in enumerate(symbols)
            if symbol == segment and int(lattice.source[arc]) in at
        }
    assert int(lattice.finals[0]) in at
    assert [segment.split("(")[0] for segment in segments if segment[0] not in "<["] == words
