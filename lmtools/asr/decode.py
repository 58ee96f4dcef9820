"""A run of a recogniser over recordings: by several processes, each utterance by itself, resumable
at any of them, with the same lists in the end.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tqdm import tqdm

from lmtools.asr.audio import read_samples
from lmtools.asr.recognisers import Recogniser, make_recogniser, sign_recogniser
from lmtools.asr.utterances import Utterance, find_utterances, identify_audio
from lmtools.errors import UserError
from lmtools.formats import jsonl
from lmtools.journal import Journal, JournalEntry
from lmtools.lock import hold_lock
from lmtools.types import NBest
from lmtools.workers import as_completed


@dataclass(frozen=True)
class DecodeOptions:
    """Which recogniser, NAME:DIR with `key=value` options, on which device, by how many
    processes.
    """

    asr: str
    opts: Sequence[str] = ()
    device: str = "auto"
    nj: int = 1


@dataclass(frozen=True)
class Decoded:
    """What was decoded, in this run or before: `seconds` of speech and what decoding them took;
    `cut` utterances were too long for the recogniser.
    """

    utterances: int
    hypotheses: int
    seconds: float
    spent: float
    cut: int

    @property
    def real_time_factor(self) -> float:
        """Seconds that a process takes for a second of speech."""
        return self.spent / self.seconds


def decode_speech(source, out: str, options: DecodeOptions, ref=None) -> Decoded:
    """Write the N-best lists of the recordings in `source` to `out`, in their order, with
    transcripts where there are any (or those in the Kaldi text `ref`).

    What an earlier run decoded of the same audio with the same model and options is taken from its
    journal. UserError for what cannot be read or decoded; all that was decoded is kept.
    """
    if out == "-":
        raise UserError("-: lists of speech are resumed by the name of their file; give one")
    utterances = find_utterances(source, ref)
    recogniser = make_recogniser(options.asr, options.opts, options.device)
    audio = identify_audio(utterances)
    with hold_lock(out):
        journal = Journal(out, sign_recogniser(options.asr, recogniser))
        known = {
            utt: entry
            for utt, entry in journal.read().items()
            if entry.notes.get("audio") == audio.get(utt)
        }
        missing = [one for one in utterances if one.utt not in known]
        if missing:
            known |= decode_missing(missing, audio, recogniser, journal, options, len(utterances))
        found = [known[one.utt] for one in utterances]
        nbests = [
            replace(entry.nbest, ref=one.ref) for entry, one in zip(found, utterances, strict=True)
        ]
        jsonl.write(nbests, out)
    return Decoded(
        len(found),
        sum(len(nbest.hyps) for nbest in nbests),
        sum(entry.notes["seconds"] for entry in found),
        sum(entry.notes["spent"] for entry in found),
        sum(entry.notes["seconds"] > recogniser.longest > 0 for entry in found),
    )


def decode_missing(
    missing: Sequence[Utterance],
    audio,
    recogniser: Recogniser,
    journal: Journal,
    options: DecodeOptions,
    total: int,
) -> dict[str, JournalEntry]:
    """The entries of utterances that the journal lacks; each is written there once it is made."""
    made = {}
    bar = tqdm(
        total=total,
        initial=total - len(missing),
        desc=f"decode by {options.asr}",
        unit="utterance",
        disable=None,
        dynamic_ncols=True,
    )
    with bar, journal.appending() as add:
        reads = [options.asr.partition(":")[2], *dict.fromkeys(u.recording.place for u in missing)]
        # processes of their own even for one: a library that crashes ends none of ours
        for number, (hyps, seconds, spent) in as_completed(
            decode_utterance, missing, min(options.nj, len(missing)), recogniser.load, reads=reads
        ):
            utt = missing[number].utt
            notes = {"audio": audio[utt], "seconds": seconds, "spent": spent}
            made[utt] = JournalEntry(NBest(utt, tuple(hyps)), notes)
            add(made[utt])
            bar.update()
    return made


def decode_utterance(recogniser: Recogniser, utterance: Utterance) -> tuple[list, float, float]:
    """The hypotheses of an utterance, its length and what decoding it took, in seconds."""
    began = time.monotonic()
    samples = read_samples(utterance, recogniser.rate)
    hyps = recogniser.decode(samples)
    if not hyps:
        raise UserError(f"{utterance.recording.where}: no hypothesis; take the recording out")
    return hyps, len(samples) / recogniser.rate, time.monotonic() - began
