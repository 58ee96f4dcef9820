"""The search of one window of sound for Whisper: the beam that it has, and wider ones behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lmtools.decode.candidates import Candidate, be_silent, merge_equal, rank_rest

WIDER = 4  # times the beam before, where one did not find enough
STEP = 0.02  # seconds between two tokens of time
CLOSE = 25  # steps by which hypotheses of the same sound may differ in their end


@dataclass
class Window:
    """Up to LONGEST seconds: `candidates`, the first of which is the answer, and what
    faster-whisper takes of that.
    """

    candidates: list[Candidate]
    no_speech: float
    answer: list[str] = field(default_factory=list)

    def heard(self) -> list[Candidate]:
        """Return the candidates; silence alone where faster-whisper takes no word of them."""
        if not (text := "".join(self.answer)).strip():
            return [be_silent(self.no_speech)]
        return [self.candidates[0]._replace(text=text), *self.candidates[1:]]


@dataclass(frozen=True)
class BeamSearch:
    """A search by faster-whisper's `model` for `depth` candidates of different words, with beams
    from `beam` to `widest`; tokens from `first_time` on are of time.
    """

    model: object
    beam: int
    depth: int
    widest: int
    first_time: int

    def search(self, encoded, prompt: list[int], options) -> tuple[Window, object]:
        """Return a window and CTranslate2's result of the first beam, under faster-whisper's
        `options`; wider beams follow until there are `depth` candidates of different words, or
        none is new, but not where faster-whisper hears silence.
        """
        scores: dict[tuple[int, ...], float] = {}
        beam, distinct = self.beam, 0
        first = result = self.generate(encoded, prompt, options, beam)
        while True:
            scores |= {
                tuple(tokens): score
                for tokens, score in zip(result.sequences_ids, result.scores, strict=True)
                if tuple(tokens) not in scores
            }
            candidates = merge_equal(self.as_candidates(scores))
            spent = len(candidates) == distinct or beam >= self.widest
            if spent or len(candidates) >= self.depth or is_silence(first, options):
                break
            distinct, beam = len(candidates), min(WIDER * beam, self.widest)
            result = self.generate(encoded, prompt, options, beam)
        candidates = rank_rest(candidates)[: self.depth]
        return Window(candidates, first.no_speech_prob), first

    def generate(self, encoded, prompt: list[int], options, beam: int):
        """Return CTranslate2's result of a search that keeps all `beam` hypotheses."""
        return self.model.model.generate(
            encoded,
            [prompt],
            beam_size=beam,
            num_hypotheses=beam,
            length_penalty=options.length_penalty,
            max_length=self.model.max_length,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=options.suppress_blank,
            suppress_tokens=options.suppress_tokens,
            max_initial_timestamp_index=round(options.max_initial_timestamp / STEP),
        )[0]

    def as_candidates(self, scores: dict[tuple[int, ...], float]) -> list[Candidate]:
        """Return candidates of tokens and their average scores, but for those that end their
        window elsewhere than the first does: what they lack, or have twice, is not in their scores.
        """
        decode = self.model.hf_tokenizer.decode
        end_of_text = self.model.hf_tokenizer.token_to_id("<|endoftext|>")
        ends = [find_end(tokens, self.first_time) for tokens in scores]
        candidates = []
        for (kept, end), (tokens, score) in zip(ends, scores.items(), strict=True):
            if (end is None) != (ends[0][1] is None) or abs((end or 0) - (ends[0][1] or 0)) > CLOSE:
                continue
            text = decode([token for token in tokens[:kept] if token < end_of_text])
            am = score * len(tokens)
            candidates.append(Candidate(text, am, len(tokens), am))
        return candidates


def average_log_prob(result) -> float:
    """Return the log-probability a token of the first hypothesis, the end counted as one."""
    tokens = len(result.sequences_ids[0])
    return result.scores[0] * tokens / (tokens + 1)


def is_silence(result, options) -> bool:
    """Return whether faster-whisper drops the first hypothesis, by the thresholds of `options`."""
    return (
        result.no_speech_prob > options.no_speech_threshold
        and average_log_prob(result) <= options.log_prob_threshold
    )


def find_end(tokens: Sequence[int], first_time: int) -> tuple[int, int | None]:
    """Return how many of a window's tokens count, and at which token of time the next window
    begins, None: where this one ends.

    As Whisper has it: what follows two tokens of time in a row is begun anew in the next window,
    unless the last token alone is one.
    """
    timed = [token >= first_time for token in tokens]
    pairs = [place for place in range(1, len(tokens)) if timed[place - 1] and timed[place]]
    if not pairs or timed[-2:] == [False, True]:
        return len(tokens), None
    return pairs[-1], tokens[pairs[-1] - 1]
