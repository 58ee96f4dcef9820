#!/usr/bin/env python3
"""search_curve.py MODEL SPEECH LM BEAM,DOUBT[:PAUSE][,DOUBT[:PAUSE]..] ..: what the search of long
recordings finds, and what it costs.

SPEECH has recordings and their `text`, as of `made_speech.py --joined`. A row for each BEAM of
windows and each DOUBT, the probability of a word below which others are searched for: WER of
Whisper's own answer, of the second pass by LM with `default:whisper`, and of the best choice from
the lists; processor seconds of a window, lists included. With PAUSE (in ms) segments end where
silero hears no speech for that long, not at Whisper's tokens of time. One thread.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from unittest import mock

import numpy as np
from faster_whisper.vad import VadOptions, get_speech_timestamps

from lmtools import NBest, load, rescore
from lmtools.decode import segments, windows
from lmtools.decode.audio import read_samples
from lmtools.decode.recognisers import make_recogniser
from lmtools.decode.utterances import find_utterances
from lmtools.formats import edits
from lmtools.text.normaliser import NORMALISERS

TITLES = edits.read_spellings(Path(__file__).parents[1] / "conf/titles.txt")
DEPTH = 20
SCORE = segments.score_texts


def write(text: str) -> str:
    return edits.spell(NORMALISERS["librispeech"](text), TITLES)


def cut_at_pauses(found, samples: np.ndarray, least: int):
    """Return a window's search with the parts of its text between pauses of `least` ms."""
    rate, words, owned = found.model.rate, found.words, found.tokens
    options = VadOptions(min_silence_duration_ms=least, speech_pad_ms=0)
    said = get_speech_timestamps(samples[: found.steps * segments.HOP], options)
    spoken = [
        at
        for part in found.parts
        for at in range(part.begin, part.stop)
        if owned[at] < found.tokenizer.eot
    ]
    firsts = [spoken[at] for at in accumulate([0, *(len(word.tokens) for word in words[:-1])])]
    begins = {0}
    for one, other in pairwise(said):
        middle = (one["end"] + other["start"]) / 2 / rate
        later = (at for at, word in enumerate(words) if (word.start + word.end) / 2 > middle)
        begins.add(next(later, 0))
    parts = []
    for begin, stop in pairwise([*sorted(begins), len(words)]):
        first, last = words[begin], words[stop - 1]
        start = round(first.start / segments.TICK)
        cuts = [*firsts, found.parts[-1].stop]
        # a token of time goes with the word behind it
        bounds = [cuts[at] - (0 < at < len(words) and owned[cuts[at] - 1] > found.tokenizer.eot)
                  for at in (begin, stop)]  # fmt: skip
        bounds[0] = found.parts[0].begin if begin == 0 else bounds[0]
        end = max(start + 1, round(last.end / segments.TICK))
        parts.append(windows.TimedPart(start, end, *bounds))
    return replace(found, parts=parts)


def score_texts(window, texts: Sequence[list[int]], owners: Sequence[int]) -> list:
    """Return candidates as segments.score_texts does; the token behind a part, which may be a word
    where a pause ends it, counts with the part.
    """
    behind = [window.tokens[window.parts[owner].stop :][:1] for owner in owners]
    longer = [[*text, *more] for text, more in zip(texts, behind, strict=True)]
    scored = SCORE(window, longer, owners)
    spoken = ([token for token in text if token < window.tokenizer.eot] for text in texts)
    return [
        one._replace(text=window.tokenizer.decode(tokens))
        for one, tokens in zip(scored, spoken, strict=True)
    ]


def count_errors(ref: Sequence[str], lists: Sequence[Sequence[str]]) -> int:
    """Return the least errors of one text of each list, joined."""
    words, places = np.array(ref), np.arange(len(ref) + 1)
    row = places
    for texts in lists:
        rows = []
        for text in set(texts):
            after = row
            for word in text.split():
                kept = np.append(after[0] + 1, after[:-1] + (words != word))
                after = np.minimum.accumulate(np.minimum(after + 1, kept) - places) + places
            rows.append(after)
        row = np.min(rows, axis=0)
    return int(row[-1])


def find_windows(model, beam: int, sounds: Sequence[np.ndarray]) -> list[list[tuple]]:
    """Return what `find_segments` is called with, and the samples, of each recording's windows."""
    held = []
    for sound in sounds:
        asked: list[tuple] = []
        keep = mock.Mock(side_effect=lambda *args, asked=asked: asked.append(args) or [])
        with mock.patch.object(windows, "find_segments", keep):
            options = replace(model.options, window=beam)
            heard = [one.samples for one in windows.decode_recording(model, [sound], options)]
        held.append([(*args[:3], one) for args, one in zip(asked, heard, strict=True)])
    return held


def main(directory: str, speech: str, name: str, *rows: str) -> None:
    """Print the rows."""
    utterances, lm = find_utterances(speech, Path(speech, "text")), load(name)
    refs = [write(one.ref).split() for one in utterances]
    model = make_recogniser(f"whisper:{directory}", [], "cpu").load()
    sounds = [read_samples(one, model.rate) for one in utterances]
    assert model.forced
    total = sum(map(len, refs))
    print("| beam | doubt | pause | own answer | with LM | oracle | seconds | segments | texts |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for beam, *doubts in (row.split(",") for row in rows):
        begin = time.process_time()
        held = find_windows(model, int(beam), sounds)
        searched = time.process_time() - begin
        for doubt, _, pause in (one.partition(":") for one in doubts):
            begin, lists = time.process_time(), []
            score = score_texts if pause else SCORE
            with mock.patch.multiple(segments, DOUBT=float(doubt), score_texts=score):
                for asked in held:
                    found = []
                    for search, others, no_speech, samples in asked:
                        one = replace(search)  # without the words that an earlier row found
                        if pause and one.words:
                            one = cut_at_pauses(one, samples, int(pause))
                        found += segments.find_segments(one, others, no_speech, DEPTH)
                    lists.append([
                        edits.rewrite_list(NBest(f"{len(lists)}-{at}", one.hyps), hyps=write)
                        for at, one in enumerate(found)
                    ])  # fmt: skip
            seconds = (searched + time.process_time() - begin) / sum(map(len, held))
            flat = [edits.merge_equal(one, str) for some in lists for one in some]
            best = rescore(flat, "default:whisper", {"lm": lm.score_lists(flat)})
            chosen = {one.utt: one.hyps[0].text for one in best}
            kinds = (
                [[[one.hyps[0].text] for one in some] for some in lists],
                [[[chosen[one.utt]] for one in some] for some in lists],
                [[[hyp.text for hyp in one.hyps] for one in some] for some in lists],
            )
            rates = (100 * sum(map(count_errors, refs, kind)) / total for kind in kinds)
            texts = np.mean([len(one.hyps) for one in flat])
            figures = " | ".join(f"{rate:.2f}" for rate in (*rates, seconds))
            print(
                f"| {beam} | {doubt} | {pause} | {figures} | {len(flat)} | {texts:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
