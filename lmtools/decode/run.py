"""A run of a recogniser over recordings: by several processes, each utterance by itself, resumable
at any of them, with the same lists in the end.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from lmtools.base.atomic import atomic_text, hold_lock, is_stream
from lmtools.base.computing import WHOLE, Shard
from lmtools.base.errors import UserError, one_line
from lmtools.base.log import ProgressBar, say
from lmtools.base.workers import as_completed
from lmtools.decode.audio import read_samples
from lmtools.decode.recognisers import Recogniser, make_recogniser, sign_recogniser
from lmtools.decode.utterances import Utterance, find_utterances, identify_audio
from lmtools.formats import jsonl
from lmtools.formats.journal import Journal, JournalEntry
from lmtools.types import NBest

REMEDY = "give fewer processes (a lower --nj), or fetch the model again"
FAILED = ".failed"  # what follows the name of the lists in the name of their report


@dataclass(frozen=True)
class DecodeOptions:
    """Which recogniser, NAME:DIR with `key=value` options, on which device, by how many
    processes; `strict`: the first recording that fails ends the run; `shard`: which part of the
    recordings, of which any may fail.
    """

    asr: str
    opts: Sequence[str] = ()
    device: str = "auto"
    nj: int = 1
    strict: bool = False
    shard: Shard = WHOLE


@dataclass(frozen=True)
class Decoded:
    """Totals of decoding, in this run or before: `seconds` of speech and the seconds that decoding
    them took; `long` utterances were decoded in several windows; `failed` has the reason of each
    that could not be decoded, by name.
    """

    utterances: int
    hypotheses: int
    seconds: float
    spent: float
    long: int
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def real_time_factor(self) -> float:
        """Return seconds that a process takes for a second of speech."""
        return self.spent / self.seconds if self.seconds else 0.0


def decode_speech(source, out: str, options: DecodeOptions, ref=None) -> Decoded:
    """Write the N-best lists of the recordings in `source` to `out`, in their order, with
    transcripts where there are any (or those in the Kaldi text `ref`), and the reasons of those
    that cannot be decoded to `out` FAILED, lines `utt reason`, which is not there if there is none.

    What an earlier run decoded of the same audio with the same model and options is taken from its
    journal; what failed is tried again. UserError for what cannot be read or decoded where
    `strict`, or of all recordings; what was decoded is kept.
    """
    if is_stream(out):
        raise UserError(f"{out}: lists of speech are resumed by the name of their file; give one")
    utterances = list(options.shard.share(partial(find_utterances, source, ref)))
    recogniser = make_recogniser(options.asr, options.opts, options.device)
    with hold_lock(out):
        known, failed = find_entries(utterances, recogniser, options, out)
        if failed:  # before the lists that lack them
            with atomic_text(out + FAILED) as stream:
                stream.writelines(f"{utt} {reason}\n" for utt, reason in failed.items())
        if not known and options.shard == WHOLE:
            utt, reason = next(iter(failed.items()))
            raise UserError(f"{source}: no recording can be decoded; the first, {utt}: {reason}")
        kept = [
            (known[utterance.utt], utterance.ref)
            for utterance in utterances
            if utterance.utt in known
        ]
        jsonl.write([replace(entry.nbest, ref=ref) for entry, ref in kept], out)
        if not failed:
            Path(out + FAILED).unlink(missing_ok=True)
    entries = [entry for entry, _ in kept]
    lengths = [entry.notes["seconds"] for entry in entries]
    return Decoded(
        utterances=len(entries),
        hypotheses=sum(len(entry.nbest.hyps) for entry in entries),
        seconds=sum(lengths),
        spent=sum(entry.notes["spent"] for entry in entries),
        long=sum(seconds > recogniser.longest > 0 for seconds in lengths),
        failed=failed,
    )


def find_entries(
    utterances: Sequence[Utterance], recogniser: Recogniser, options: DecodeOptions, out: str
) -> tuple[dict[str, JournalEntry], dict[str, str]]:
    """Return the entries of utterances, known or decoded now, and reasons of those that failed."""
    audio, failed = identify_audio(utterances)
    for utt, reason in failed.items():
        report_failure(utt, reason, options.strict)
    journal = Journal(out, sign_recogniser(options.asr, recogniser))
    known = {
        utt: entry
        for utt, entry in journal.read().items()
        if utt in audio and entry.notes.get("audio") == audio[utt]
    }
    missing = [one for one in utterances if one.utt in audio and one.utt not in known]
    label, there = f"decode by {options.asr}", len(utterances) - len(missing)
    if missing:
        with (
            ProgressBar(label, len(utterances), "utterance", there) as progress,
            journal.appending() as add,
        ):
            for utt, made in decode_missing(missing, recogniser, options):
                if isinstance(made, str):
                    failed[utt] = made
                    report_failure(utt, made, options.strict)
                else:
                    hyps, seconds, spent = made
                    notes = {"audio": audio[utt], "seconds": seconds, "spent": spent}
                    known[utt] = JournalEntry(NBest(utt, tuple(hyps)), notes)
                    add(known[utt])
                progress.advance()
    return known, {one.utt: failed[one.utt] for one in utterances if one.utt in failed}


def report_failure(utt: str, reason: str, strict: bool) -> None:
    """Say that an utterance failed, and why; UserError for that if `strict`."""
    if strict:
        raise UserError(reason)
    say(one_line(UserError(f"{utt}: failed: {reason}")))


def decode_missing(
    missing: Sequence[Utterance], recogniser: Recogniser, options: DecodeOptions
) -> Iterator[tuple[str, tuple[list, float, float] | str]]:
    """Yield the id of each utterance and what `decode_utterance` makes of it, as it is made."""
    # processes of their own even for one: a library that crashes ends none of ours
    results = as_completed(
        decode_utterance, missing, min(options.nj, len(missing)), recogniser.load,
        remedy=REMEDY,
    )  # fmt: skip
    for number, result in results:
        yield missing[number].utt, result


def decode_utterance(
    recogniser: Recogniser, utterance: Utterance
) -> tuple[list, float, float] | str:
    """Return the hypotheses, the length and the time taken, in seconds; or why there are none."""
    began, where = time.monotonic(), utterance.recording.where
    try:
        samples = read_samples(utterance, recogniser.rate)
        hyps = recogniser.decode(samples)
    except UserError as error:
        return one_line(error)
    # whatever a library says of sound that it does not like
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        return one_line(UserError(f"{where}: cannot be decoded ({cause}); take it out"))
    if not hyps:
        return f"{where}: no hypothesis; take the recording out"
    return hyps, len(samples) / recogniser.rate, time.monotonic() - began
