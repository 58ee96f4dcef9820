"""Recordings as samples: any format of libsndfile, and by PyAV what phones and cameras write; one
channel, at the rate of the recogniser.
"""

import functools
import io
import itertools
import math
import os
from collections.abc import Iterator

import numpy as np

from lmtools.base.errors import UserError, explain_missing
from lmtools.base.files import cannot
from lmtools.base.log import say
from lmtools.decode.utterances import MEDIA, Utterance, check_file
from lmtools.formats import kaldi_io

BLOCK = 60  # seconds read at a time: a header may claim any length
MOST = 4 * 3600  # seconds of an utterance
RATES = range(4_000, 400_001)  # samples a second that speech may have
BEYOND = 0.5  # seconds by which a segment may end after its recording, as Kaldi permits


def read_samples(utterance: Utterance, rate: int) -> np.ndarray:
    """Return the samples (N,) float32 in [-1, 1] of an utterance at `rate` a second, N > 0.

    UserError, which names the file, for what is no audio, has several channels or no samples, or
    ends before the utterance does.
    """
    import soundfile  # only decoding needs it

    recording = utterance.recording
    source, where = recording.place, recording.where
    suffix = os.path.splitext(source)[1].lower()
    if recording.command:
        source = io.BytesIO(run_command(source))
    else:
        check_file(recording)
        if suffix in MEDIA:
            source = io.BytesIO(decode_media(source, MEDIA[suffix], where))
    try:
        with soundfile.SoundFile(source) as sound:
            native = sound.samplerate
            if sound.channels != 1 or native not in RATES:
                raise UserError(
                    f"{where}: {sound.channels} channels at {native} Hz; give one channel of"
                    f" speech, {RATES[0]} to {RATES[-1]} Hz (sox IN OUT remix 1)"
                )
            samples = read_part(sound, utterance, where)
    except (soundfile.LibsndfileError, RuntimeError, TypeError) as error:
        raise no_audio(where, getattr(error, "error_string", error)) from None
    except OSError as error:
        raise cannot("read", where, error) from None
    if not np.isfinite(samples).all():
        raise UserError(f"{where}: has samples that are no numbers; write it again")
    return resample(samples, native, rate)


def no_audio(where: str, cause) -> UserError:
    cause = " ".join(str(cause).split()).rstrip(".")
    return UserError(f"{where}: cannot be read as audio ({cause}); replace it, or take it out")


@functools.lru_cache(maxsize=1)
def decode_media(place: str, form: str, where: str) -> bytes:
    """Return the first sound of a file of FFmpeg's format `form` as a WAV file; the last stays."""
    import soundfile

    try:
        import av
    except ImportError as error:
        raise explain_missing(error, f"{where}:") from None
    content = io.BytesIO()
    try:
        # the format is not guessed: a playlist would name other files
        with av.open(place, format=form) as media:
            (stream, *_) = media.streams.audio
            rate, layout = stream.sample_rate, stream.layout
            even = av.AudioResampler(format="flt", layout=layout, rate=rate)
            shape = {"samplerate": rate, "channels": layout.nb_channels}
            with soundfile.SoundFile(content, "w", format="WAV", subtype="FLOAT", **shape) as out:
                for frame in itertools.chain(media.decode(stream), [None]):
                    for part in even.resample(frame):
                        out.write(part.to_ndarray().reshape(-1, layout.nb_channels))
                    if out.frames > MOST * rate:
                        raise UserError(f"{where}: more than {MOST // 3600} hours; cut it")
    except UserError:
        raise
    except Exception as error:  # FFmpeg has a class of its own for each fault
        raise no_audio(where, error) from None
    return content.getvalue()


@functools.lru_cache(maxsize=1)
def run_command(command: str) -> bytes:
    """Return the output of a command; that of the last stays, as segments share it."""
    with kaldi_io.open_output(command) as stream:
        blocks = iter(lambda: stream.read(min(1 << 20, len(stream.peek(1 << 20)))), b"")
        return b"".join(blocks)


# what a file may be for FFmpeg: sound and film, no list of other files
CONTAINERS = (
    "aac,ac3,aiff,amr,asf,au,avi,caf,flac,flv,matroska,webm,mov,mp4,m4a,3gp,mp3,mpeg,mpegts,"
    "nistsphere,ogg,w64,wav,wv"
)


class SoundStream:
    """The sound of a file, or of an open binary file, as blocks (N,) float32 in [-1, 1] at `rate`,
    all channels mixed into one; in constant memory. `again`: it can be gone through more than once,
    as a pipe can not.

    Packets that are damaged are passed over, and said. UserError for what holds no sound.
    """

    def __init__(self, source, rate: int, where: str):
        self.source, self.rate, self.where, self.told = source, rate, where, False
        self.again = not hasattr(source, "seekable") or source.seekable()

    def __iter__(self) -> Iterator[np.ndarray]:
        import av

        damaged = heard = 0
        mixer = av.AudioResampler(format="flt", layout="mono", rate=self.rate)
        if self.again and hasattr(self.source, "seek"):
            self.source.seek(0)
        try:
            with open_media(self.source) as media:
                for packet in media.demux(media.streams.audio[0]):
                    try:
                        frames = packet.decode()
                    except av.FFmpegError:
                        damaged += 1
                        continue
                    for frame in frames:
                        frame.pts = None  # times that jump are no reason to stop
                        yield from (one.to_ndarray().reshape(-1) for one in mixer.resample(frame))
                        heard += frame.samples
                if heard:
                    yield from (one.to_ndarray().reshape(-1) for one in mixer.resample(None))
        except (av.FFmpegError, OSError, ValueError, IndexError) as error:
            cause = "no sound in it" if isinstance(error, IndexError) else error
            raise no_audio(self.where, cause) from None
        if not heard:
            raise UserError(f"{self.where}: no samples there; record it again, or take it out")
        if damaged and not self.told:
            self.told = True
            say(f"warning: {self.where}: {damaged} damaged packets were passed over")


def open_media(source):
    """Open a file, or an open binary file, as sound or film."""
    import av

    options = {"format_whitelist": CONTAINERS, "protocol_whitelist": "file"}
    return av.open(source, "r", options=options, metadata_errors="ignore")


def measure_sound(source, where: str) -> float:
    """Return the seconds that a file says it lasts; 0 where it does not say. UserError for what is
    no sound.
    """
    import av

    try:
        with open_media(source) as media:
            stream = media.streams.audio[0]
            own = float(stream.duration * stream.time_base) if stream.duration else 0.0
            return own or (media.duration or 0) / 1e6
    except (av.FFmpegError, OSError, ValueError, IndexError) as error:
        cause = "no sound in it" if isinstance(error, IndexError) else error
        raise no_audio(where, cause) from None


def read_part(sound, utterance: Utterance, where: str) -> np.ndarray:
    """Return the samples of an open file from `start` to `end` at its own rate."""
    rate = sound.samplerate
    first = round(utterance.start * rate)
    most = MOST * rate if utterance.end is None else round(utterance.end * rate) - first
    if first and first <= sound.frames:
        sound.seek(first)
    blocks, left = [], most + 1 if utterance.end is None else most
    while left > 0 and first <= sound.frames:
        block = sound.read(min(left, BLOCK * rate), dtype="float32")
        if not len(block):
            break
        blocks.append(block)
        left -= len(block)
    samples = np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.float32)
    if not len(samples):
        raise UserError(f"{where}: no samples there; record it again, or take it out")
    if utterance.end is None and len(samples) > most:
        raise UserError(f"{where}: more than {MOST // 3600} hours; cut it, or write segments")
    if utterance.end is not None and left > BEYOND * rate:
        raise UserError(
            f"{where}: ends after {utterance.start + len(samples) / rate:.2f} s, the utterance"
            f" at {utterance.end:g} s; correct the segment"
        )
    return samples


def resample(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    if rate == wanted:
        return samples
    from scipy.signal import resample_poly

    shared = math.gcd(rate, wanted)
    return resample_poly(samples, wanted // shared, rate // shared).astype(np.float32)
