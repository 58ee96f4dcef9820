"""N-best lists scored by an ear: each text given the sound of its utterance, by several processes,
with what was scored before taken from the cache.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lmtools.base.computing import Computing
from lmtools.base.doors import open_door
from lmtools.base.errors import UserError, one_line
from lmtools.base.log import ProgressBar, say
from lmtools.base.workers import as_completed
from lmtools.ears.listening import Ear, Heard, make_ear
from lmtools.rescoring.features import NEAR
from lmtools.score.cache import Cache, cache_directory
from lmtools.score.lists import WRITTEN, ListParts, hypothesis_texts, write_scores
from lmtools.types import SESSION, Hypothesis, NBest

TOKENS = "tokens"  # in the cache's key of how many a text has
REMEDY = "give fewer processes (a lower --nj)"
TIMES = ("start", "end")  # extras of a list: where its session has the segment, in seconds


@dataclass(frozen=True)
class Question:
    """What is asked of an ear in one process: `texts` of an utterance of the recordings, whose
    sound the cache calls `sound`.
    """

    utterance: object
    sound: str
    texts: tuple[str, ...]


def score_by_ear(
    lists: ListParts,
    out: str,
    ear: Ear | str,
    audio: str,
    computing: Computing,
    written: bool = False,
) -> None:
    """Write the scores of N-best lists given the recordings in `audio` (a directory, wav.scp or one
    recording, whose names are the lists' ids, or their sessions where lists have times).

    `written`: of hypotheses, what the recogniser wrote. UserError for a list without a recording,
    and for sound that cannot be read or is too long.
    """
    with (
        hearing(ear, audio, computing, written) as (listen, signature),
        contextlib.ExitStack() as stack,
    ):
        write, totals, utterances = None, 0, 0
        for nbests in lists:
            heard = listen(nbests)
            write = write or stack.enter_context(write_scores(out, signature))
            for nbest, rows in zip(nbests, heard, strict=True):
                write(nbest, [row.log_prob for row in rows], [row.tokens for row in rows])
                totals += len(rows)
            utterances += len(nbests)
    say(f"{out}: {totals:,} hypotheses of {utterances:,} utterances, by ear")


def with_am(
    nbests: Sequence[NBest], ear: Ear | str, audio: str, computing: Computing, written: bool = False
) -> list[NBest]:
    """Return the lists with `am` of all hypotheses by an ear, in the place of their own scores but
    for NEAR; the rest is as of `score_by_ear`.
    """
    made = []
    with hearing(ear, audio, computing, written) as (listen, _):
        for nbest, rows in zip(nbests, listen(nbests), strict=True):
            near = [{NEAR: hyp.scores[NEAR]} if NEAR in hyp.scores else {} for hyp in nbest.hyps]
            scores = [{"am": row.log_prob, **kept} for row, kept in zip(rows, near, strict=True)]
            hyps = map(Hypothesis.with_scores, nbest.hyps, scores)
            made.append(replace(nbest, hyps=tuple(hyps)))
    return made


@contextlib.contextmanager
def hearing(ear: Ear | str, audio: str, computing: Computing, written: bool):
    """Yield a function of lists, which returns what is heard of each hypothesis of each, and the
    signature of such scores.
    """
    ear = make_ear(ear, computing.device) if isinstance(ear, str) else ear
    find = open_door("decode", "utterances:find_utterances", "--audio")
    recordings = {one.utt: one for one in find(audio) if not one.wrong}
    cache = Cache(cache_directory(computing.cache), ear.signature)

    def listen(nbests: Sequence[NBest]) -> list[list[Heard]]:
        questions = ask_lists(nbests, recordings, audio, written)
        known = answer(questions, ear, cache, computing.nj)
        pairs = zip(nbests, questions, strict=True)
        return [
            [known[one.sound, text] for text in hypothesis_texts([nbest], written)]
            for nbest, one in pairs
        ]

    with contextlib.closing(cache):
        yield listen, {**ear.signature, **(WRITTEN if written else {})}


def ask_lists(
    nbests: Sequence[NBest], recordings: Mapping, audio: str, written: bool
) -> list[Question]:
    """Return what is asked for each list: its distinct texts."""
    utterances = [find_sound(nbest, recordings, audio) for nbest in nbests]
    identify = open_door("decode", "utterances:identify_audio", "--audio")
    sounds, failed = identify(utterances)
    if failed:
        raise UserError(next(iter(failed.values())))
    return [
        Question(one, sounds[one.utt], tuple(dict.fromkeys(hypothesis_texts([nbest], written))))
        for nbest, one in zip(nbests, utterances, strict=True)
    ]


def answer(
    questions: Sequence[Question], ear: Ear, cache: Cache, nj: int
) -> dict[tuple[str, str], Heard]:
    """Return what each text has with its sound, from the cache or heard now."""
    pairs = list(dict.fromkeys((one.sound, text) for one in questions for text in one.texts))
    values, counts = cache.get(pairs), cache.get([(*pair, TOKENS) for pair in pairs])
    known = {pairs[at]: Heard(values[at], int(counts[at])) for at in values if at in counts}
    left = [
        replace(one, texts=texts)
        for one in questions
        if (texts := tuple(text for text in one.texts if (one.sound, text) not in known))
    ]
    if left:
        results = as_completed(hear, left, min(nj, len(left)), ear.load, remedy=REMEDY)
        there = len(questions) - len(left)
        with ProgressBar("score by ear", len(questions), "utterance", there) as progress:
            for number, heard in results:
                fresh = dict(
                    zip([(left[number].sound, t) for t in left[number].texts], heard, strict=True)
                )
                known |= fresh
                cache.put((pair, one.log_prob) for pair, one in fresh.items())
                cache.put(((*pair, TOKENS), float(one.tokens)) for pair, one in fresh.items())
                progress.advance()
    return known


def hear(ear: Ear, question: Question) -> list[Heard]:
    """Return what the sound of one utterance gives its texts."""
    read = open_door("decode", "audio:read_samples", "--audio")
    try:
        return ear.score(question.texts, read(question.utterance, ear.rate))
    except UserError as error:
        where = question.utterance.recording.where
        cause = one_line(error)
        raise UserError(cause if where in cause else f"{where}: {cause}") from None


def find_sound(nbest: NBest, recordings: Mapping, audio: str):
    """Return the utterance of a list: the recording of its name, or the part of its session's."""
    if nbest.utt in recordings:
        return recordings[nbest.utt]
    session = nbest.extra.get(SESSION)
    if session in recordings and all(name in nbest.extra for name in TIMES):
        start, end = (float(nbest.extra[name]) for name in TIMES)
        return replace(recordings[session], utt=nbest.utt, start=start, end=end)
    known = next(iter(recordings), "none")
    raise UserError(
        f"{audio}: no recording of list {nbest.utt!r} (there is {known!r}); name recordings as the"
        " lists are, or give the wav.scp of which they were made"
    )
