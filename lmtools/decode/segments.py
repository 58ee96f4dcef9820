"""Segments of a window and their alternatives: local differences that the window's own search
found and those that searches from its doubtful words find, joined, each scored by the decoder in
the window's context.
"""

import difflib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from lmtools.decode.whisper import DIGITS, HOP, WORDS, Candidate, Whisper
from lmtools.types import Hypothesis

TICK = 0.02  # seconds between two tokens of time
DOUBT = 0.95  # probability of a word below which it is searched for others
AHEAD = 10  # tokens that such a search finds
NEAR = 5  # tokens after a doubtful word within which its search serves others
BRANCHES = 6  # beam of such a search
BEFORE, LATER = 15, 300  # of time, before and after the word, that it hears
TOLD = 32  # tokens before the word that it is told
PLACES = 10  # of them in a window at most, the most doubtful ones
JOINED = 4  # differences of which pairs are made
EDITS = 8  # differences of a segment at most
SLOW = 1.4  # seconds of a word at most where a sentence begins or ends
ENDS = (".", "?", "!", "…", "。", "？", "！")


@dataclass
class SpokenSegment:
    """Speech from `start` to `end` seconds of its recording; the first of `hyps` is Whisper's own
    answer, the others follow by `am`. `place` is its number in its window.
    """

    start: float
    end: float
    hyps: list[Hypothesis]
    place: int


class SpokenWord(NamedTuple):
    """A word of a window's own text: its segment, its tokens, what tells it from others, its time
    in seconds of the window, and its probability.
    """

    place: int
    tokens: tuple[int, ...]
    key: str
    start: float
    end: float
    probability: float
    text: str


class Edit(NamedTuple):
    """Other `words`, each as its tokens, for the own words `begin` to `stop`."""

    begin: int
    stop: int
    words: tuple[tuple[int, ...], ...]


@dataclass
class WindowSearch:
    """A window that was decoded: what was asked, `tokens` that came, their `parts` with words, and
    where it begins in steps of HOP samples; `time` tells times in the recording (silence.py).
    """

    model: Whisper
    tokenizer: object
    encoded: object
    prompt: list[int]
    tokens: list[int]
    parts: list
    at: int
    steps: int
    time: Callable[..., float]

    def __post_init__(self):
        spoken = [part for part in self.parts if self.text_of(part).strip()]
        last = self.steps * HOP / self.model.rate / TICK
        self.parts = [part for part in spoken if part.start != part.end and part.start < last]

    @property
    def told(self) -> list[int]:
        """The tokens of text before the window."""
        sot = self.prompt.index(self.tokenizer.sot)
        return [token for token in self.prompt[1:sot] if token < self.tokenizer.eot]

    def text_of(self, part) -> str:
        return self.tokenizer.decode(self.spoken(part))

    def spoken(self, part) -> list[int]:
        """Return the tokens of a part that are no times."""
        eot = self.tokenizer.eot
        return [token for token in self.tokens[part.begin : part.stop] if token < eot]

    def align(self, tokens: list[int]) -> list[dict]:
        """Return the words of tokens, with times and probabilities as faster-whisper has them."""
        from faster_whisper.transcribe import merge_punctuations

        (words,) = self.model.model.find_alignment(
            self.tokenizer, [tokens], self.encoded, self.steps
        ) or [[]]
        merge_punctuations(words, "\"'“¿([{-", "\"'.。,，!！?？:：”)]}、")
        return [word for word in words if word["tokens"]]

    @cached_property
    def words(self) -> list[SpokenWord]:
        """The words of the window's own text; one that goes on in the next segment is cut."""
        texts = [self.spoken(part) for part in self.parts]
        if not texts:
            return []
        owners = [place for place, text in enumerate(texts) for _ in text]
        words, at = [], 0
        for one in self.align(list(itertools.chain(*texts))):
            times = float(one["start"]), float(one["end"]), float(one["probability"])
            owned = zip(owners[at:], one["tokens"], strict=False)
            at += len(one["tokens"])
            cut = [(k, [t for _, t in some]) for k, some in itertools.groupby(owned, itemgetter(0))]
            for place, tokens in cut:
                text = one["word"] if len(cut) == 1 else self.tokenizer.decode(tokens)
                words.append(SpokenWord(place, tuple(tokens), WORDS(text), *times, text))
        return words

    def word_times(
        self, segment: SpokenSegment, text: str
    ) -> list[tuple[str, float, float, float]]:
        """Return (word, start, end, probability) of each word of `text`."""
        own = [word for word in self.words if word.place == segment.place]
        if "".join(word.text for word in own).split() == text.split():
            timed = [(word.text, word.start, word.end, word.probability) for word in own]
        else:
            before = [self.spoken(part) for part in self.parts[: segment.place]]
            head = list(itertools.chain(*before))
            skip, timed = len(head), []
            for one in self.align([*head, *self.tokenizer.encode(" " + text.strip())]):
                if skip <= 0:
                    keys = ("word", "start", "end", "probability")
                    timed.append(tuple(one[key] for key in keys))
                skip -= len(one["tokens"])
        return list(self.fit_times(segment, timed))

    def fit_times(self, segment: SpokenSegment, timed: Iterable[tuple]) -> Iterator[tuple]:
        """Yield words with times in the recording, one after another inside their segment; one
        before or after which a sentence ends does not last through the pause there.
        """
        offset, last, ended = self.at * HOP / self.model.rate, segment.start, True
        for word, *times, probability in timed:
            start, end = (offset + float(time) for time in times)
            shift = self.time((start + end) / 2) - (start + end) / 2
            ends = word.rstrip("\"'”»)").endswith(ENDS)
            if end - start > SLOW and (ends or ended):
                start, end = (start, start + SLOW) if ends else (end - SLOW, end)
            start, end = (min(max(time + shift, last), segment.end) for time in (start, end))
            last, ended = end, ends
            yield word.strip(), start, end, float(probability)


def find_segments(
    window: WindowSearch, others: Iterable[Sequence[int]], no_speech: float, depth: int
) -> list[SpokenSegment]:
    """Return the segments of a window with their lists, of `depth` hypotheses at most; `others`
    are the tokens of its search's other hypotheses.
    """
    edits = dict.fromkeys(find_differences(window, others))
    edits |= dict.fromkeys(search_doubts(window))
    texts, owners = [], []
    for place, part in enumerate(window.parts):
        for words in list_texts(window, place, list(edits), depth):
            tokens = window.tokens[part.begin : part.stop]
            first, last = (
                [token] if token >= window.tokenizer.timestamp_begin else []
                for token in (tokens[0], tokens[-1])
            )
            texts.append([*first, *itertools.chain(*words), *last])
            owners.append(place)
    scored = score_texts(window, texts, owners)
    offset, last = window.at * HOP / window.model.rate, window.steps * HOP / window.model.rate
    segments = []
    for place, part in enumerate(window.parts):
        own, *rest = [one for one, owner in zip(scored, owners, strict=True) if owner == place]
        rest.sort(key=lambda one: -one.am)
        hyps = [one.as_hypothesis(no_speech) for one in (own, *rest)]
        # what Whisper says of the end may be later than that of the sound
        ticks = (part.start, max(part.start, min(part.end, round(last / TICK))))
        start, end = (offset + TICK * tick for tick in ticks)
        times = window.time(start), window.time(end, end=True)
        times = (round(time, DIGITS) for time in times)
        segments.append(SpokenSegment(*times, hyps=hyps, place=place))
    return segments


def score_texts(
    window: WindowSearch, texts: Sequence[list[int]], owners: Sequence[int]
) -> list[Candidate]:
    """Return candidates of the texts of parts: the sums of their tokens' log-probabilities, those
    of time with them, after the window's own words before.
    """
    if not texts:
        return []
    begins = [window.parts[owner].begin for owner in owners]
    whole = [window.tokens[:begin] + text for begin, text in zip(begins, texts, strict=True)]
    encoded = np.array(window.encoded)[0]
    rows = window.model.forced.log_probs(encoded, window.prompt, whole)
    return [
        Candidate(
            window.tokenizer.decode([token for token in text if token < window.tokenizer.eot]),
            float(row[begin : begin + len(text)].sum()),
            len(text),
        )
        for text, row, begin in zip(texts, rows, begins, strict=True)
    ]


def list_texts(
    window: WindowSearch, place: int, edits: Sequence[Edit], depth: int
) -> list[list[tuple[int, ...]]]:
    """Return the texts of a part, each as the tokens of its words: the own one, those with an edit,
    and with two; all of different words.
    """
    places = [n for n, word in enumerate(window.words) if word.place == place]
    if not places:  # what is no text in Unicode has no words
        return [[tuple(window.spoken(window.parts[place]))]]
    begin, stop = places[0], places[-1] + 1
    mine = [one for one in edits if begin <= one.begin and one.stop <= stop][:EDITS]
    pairs = [
        (a, b)
        for a, b in itertools.permutations(mine[:JOINED], 2)
        if a.stop < b.begin or (a.stop == b.begin and a.begin < b.begin)
    ]
    texts = {}
    for some in [(), *((one,) for one in mine), *pairs]:
        words, at = [], begin
        for one in some:
            words += [word.tokens for word in window.words[at : one.begin]] + [*one.words]
            at = one.stop
        words += [word.tokens for word in window.words[at:stop]]
        text = window.tokenizer.decode(list(itertools.chain(*words)))
        texts.setdefault(WORDS(text), words)
    return list(texts.values())[:depth]


def split_words(window: WindowSearch, tokens: Sequence[int]) -> tuple[list[tuple], list[str]]:
    """Return the words of tokens, each as its tokens with the marks behind it, and what tells each
    from others.
    """
    texts, groups = window.tokenizer.split_to_word_tokens([*tokens])
    words: list[list[int]] = []
    keys: list[str] = []
    for text, group in zip(texts, groups, strict=True):
        if keys and not WORDS(text):
            words[-1] += group
        else:
            words.append([*group])
            keys.append(WORDS(text))
    return [tuple(word) for word in words], keys


def compare(
    own: Sequence[str], begin: int, words: Sequence[tuple], keys: Sequence[str]
) -> Iterator[Edit]:
    """Yield the edits that make other words of the own ones, which stand from `begin` on; what
    differs at their end is cut off, no edit.
    """
    blocks = difflib.SequenceMatcher(None, own, keys, autojunk=False).get_opcodes()
    if blocks and blocks[-1][0] != "equal":
        blocks.pop()
    for tag, a, b, c, d in blocks:
        if tag != "equal":
            yield Edit(begin + a, begin + b, tuple(words[c:d]))


def find_differences(window: WindowSearch, others: Iterable[Sequence[int]]) -> Iterator[Edit]:
    """Yield the differences of other hypotheses of the window from its own."""
    own = [word.key for word in window.words]
    for tokens in others:
        text = [token for token in tokens if token < window.tokenizer.eot]
        yield from compare(own, 0, *split_words(window, text))


def search_doubts(window: WindowSearch) -> Iterator[Edit]:
    """Yield the differences that searches from doubtful words find: each hears the sound from the
    word on, and is told the words before.
    """
    import ctranslate2

    sound = np.array(window.encoded)[0]
    begin = [*window.told, *itertools.chain(*(word.tokens for word in window.words))]
    counts = np.cumsum([len(window.told), *(len(word.tokens) for word in window.words)])
    rows: dict[tuple, list] = {}
    for start in find_doubts(window):
        first = max(round(window.words[start].start / TICK) - BEFORE, 0)
        heard = sound[first : first + BEFORE + LATER]
        told = begin[max(counts[start] - TOLD, 0) : counts[start]]
        rows.setdefault((len(heard), len(told)), []).append((start, heard, told))
    for group in rows.values():
        starts, heard, told = zip(*group, strict=True)
        results = window.model.generate(
            [window.model.model.get_prompt(window.tokenizer, one, True) for one in told],
            ctranslate2.StorageView.from_array(np.stack(heard)),
            window.tokenizer, beam=BRANCHES, most=AHEAD,
        )  # fmt: skip
        for start, result in zip(starts, results, strict=True):
            own = [word.key for word in window.words[start : start + 2 * AHEAD]]
            for found in result.sequences_ids:
                words, keys = split_words(window, found)
                if len(found) == AHEAD:  # the last word may go on
                    words, keys = words[:-1], keys[:-1]
                yield from compare(own, start, words, keys)


def find_doubts(window: WindowSearch) -> list[int]:
    """Return the numbers of the doubtful words from which to search."""
    kept: list[int] = []
    ends = np.cumsum([len(word.tokens) for word in window.words])
    for n, word in enumerate(window.words):
        if word.probability < DOUBT and (not kept or ends[n] > ends[kept[-1]] + NEAR):
            kept.append(n)
    return sorted(sorted(kept, key=lambda n: window.words[n].probability)[:PLACES])
