"""What is silence: pauses that the voice activity detector of faster-whisper (silero-vad) finds,
and answers of Whisper that faster-whisper drops, or draws again at higher temperatures.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace

import numpy as np

RATE, CHUNK, CONTEXT = 16_000, 512, 64  # of the detector: samples of a chunk, and before it
AT_ONCE = 512  # chunks that it hears
SPEECH, NO_MORE = 0.5, 0.35  # probabilities at which speech begins, and may end
PAUSE, AROUND = 2 * RATE, 2 * RATE // 5  # samples of a pause at least; those of it that stay
BRIEF = RATE // 4  # samples of speech at least: clicks and tones are heard as less

NO_SPEECH, LOG_PROB = 0.6, -1.0  # beyond both it is silence
REPEATED = 2.4  # ratio of compression beyond which a text repeats itself
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the samples that are drawn where a search failed
SAMPLES = 5


class SpokenSound:
    """The blocks of a sound, samples (N,) at RATE, without its pauses of PAUSE samples and more, of
    which AROUND stay beside the speech; all of it without `vad`.

    What is left is as faster-whisper's `vad_filter` leaves it, but that shorter pauses stay at the
    beginning, too, and less than BRIEF is no speech. `total` counts the samples of the whole.
    """

    def __init__(self, blocks: Iterable[np.ndarray], vad: bool):
        self.blocks, self.vad, self.total = blocks, vad, 0
        self.starts, self.offsets = [0], [0]  # of the parts that are left: there, and in the whole

    def __iter__(self) -> Iterator[np.ndarray]:
        self.total, self.starts, self.offsets = 0, [0], [0]
        if not self.vad:
            for block in self.blocks:
                self.total += len(block)
                yield block
            return
        left = 0
        for at, block in self.find_speech():
            if at - left != self.offsets[-1]:
                self.starts.append(left)
                self.offsets.append(at - left)
            left += len(block)
            yield block

    def find_speech(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield parts of speech, and where each begins."""
        at, held = 0, np.zeros(0, np.float32)
        began = quiet = None  # where speech begins, and where it may end
        for chunk, probability in self.judge():
            held, end = np.concatenate([held, chunk]), self.total
            if probability >= SPEECH:
                began, quiet = end - len(chunk) if began is None else began, None
            elif began is not None and quiet is None and probability < NO_MORE:
                quiet = end - len(chunk)
            long = began is not None and (quiet or end) - began >= BRIEF
            if long and quiet is None:
                yield at, held
                at, held = end, held[:0]
            elif quiet is not None and end - len(chunk) - quiet >= PAUSE:
                if long:
                    yield at, held[: quiet + AROUND - at]
                began = quiet = None
            if began is None and len(held) > (PAUSE if at == 0 else AROUND):
                at, held = end - AROUND, held[-AROUND:]
        if began is not None and (quiet or self.total) - began >= BRIEF:
            yield at, held

    def judge(self) -> Iterator[tuple[np.ndarray, float]]:
        """Yield the chunks of the sound, the last one shorter, and the probability of speech."""
        from faster_whisper.vad import get_vad_model

        session, state = get_vad_model().session, np.zeros((2, 1, 1, 128), np.float32)
        before, rest, blocks = (
            np.zeros(CONTEXT, np.float32),
            np.zeros(0, np.float32),
            iter(self.blocks),
        )
        while True:
            parts, size = [rest], len(rest)
            while size < AT_ONCE * CHUNK and (block := next(blocks, None)) is not None:
                parts.append(np.asarray(block, np.float32))
                size += len(block)
            rest = np.concatenate(parts)
            heard, rest = rest[: AT_ONCE * CHUNK], rest[AT_ONCE * CHUNK :]
            if not len(heard):
                return
            padded = np.pad(heard, (0, -len(heard) % CHUNK)).reshape(-1, CHUNK)
            behind = np.concatenate([before[None], padded[:-1, -CONTEXT:]])
            before = padded[-1, -CONTEXT:]
            sound = {"input": np.concatenate([behind, padded], 1), "h": state[0], "c": state[1]}
            found, *state = session.run(None, sound)
            for place, probability in enumerate(found.reshape(-1)):
                chunk = heard[place * CHUNK : (place + 1) * CHUNK]
                self.total += len(chunk)
                yield chunk, float(probability)

    def time(self, seconds: float, end: bool = False) -> float:
        """Return the time in the whole of a time in what is left; of two such, the `end` of a part,
        or the beginning of the next.
        """
        find, sample = bisect_left if end else bisect_right, round(seconds * RATE)
        return seconds + self.offsets[max(find(self.starts, sample) - 1, 0)] / RATE


def find_answer(model, result, encoded, prompt: list[int], tokenizer, seed: int = 0):
    """Return the result whose first hypothesis faster-whisper answers, and its marks: that of the
    search, or where that repeats itself or is improbable, a sample of a higher temperature.
    """
    marks = mark(result, tokenizer)
    if is_silent(marks) or not failed(marks):
        return result, marks
    options = SimpleNamespace(
        temperatures=TEMPERATURES, best_of=SAMPLES, length_penalty=1, repetition_penalty=1,
        no_repeat_ngram_size=0, max_new_tokens=None, suppress_blank=True,
        suppress_tokens=find_suppressed(tokenizer), max_initial_timestamp=1.0,
        log_prob_threshold=LOG_PROB, no_speech_threshold=NO_SPEECH,
        compression_ratio_threshold=REPEATED,
    )  # fmt: skip
    sample, average, temperature, ratio = model.draw(encoded, prompt, tokenizer, options, seed=seed)
    again = {**marks, "avg_logprob": average, "compression_ratio": ratio}
    again["temperature"] = marks["temperature"] = temperature
    if is_silent(again) or not failed(again):
        return sample, again
    # the more probable, of those that do not repeat themselves if there are any
    rank = [(one["compression_ratio"] <= REPEATED, one["avg_logprob"]) for one in (marks, again)]
    return (sample, again) if rank[1] > rank[0] else (result, marks)


def mark(result, tokenizer) -> dict[str, float]:
    """Return avg_logprob, no_speech_prob, compression_ratio and temperature of the first hypothesis
    of a search, as faster-whisper has them: the end counts as a token.
    """
    tokens = result.sequences_ids[0]
    return {
        "avg_logprob": result.scores[0] * len(tokens) / (len(tokens) + 1),
        "no_speech_prob": result.no_speech_prob,
        "compression_ratio": compress(tokenizer.decode(list(tokens))),
        "temperature": 0.0,
    }


def compress(text: str) -> float:
    """Return the ratio of compression of a text; it repeats itself beyond REPEATED."""
    from faster_whisper.transcribe import get_compression_ratio

    return get_compression_ratio(text.strip()) if text.strip() else 0.0


def is_silent(marks: Mapping[str, float]) -> bool:
    return marks["no_speech_prob"] > NO_SPEECH and marks["avg_logprob"] <= LOG_PROB


def failed(marks: Mapping[str, float]) -> bool:
    return marks["compression_ratio"] > REPEATED or marks["avg_logprob"] < LOG_PROB


def find_suppressed(tokenizer) -> list[int]:
    """Return the tokens that faster-whisper's search never takes."""
    from faster_whisper.transcribe import get_suppressed_tokens

    return list(get_suppressed_tokens(tokenizer, [-1]))
