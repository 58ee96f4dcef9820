"""lmtools decode: N-best lists of recordings by a recogniser, Whisper or Vosk."""

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.computing import WHOLE
from lmtools.base.files import read_lines
from lmtools.base.log import say
from lmtools.decode.recognisers import RECOGNISERS, describe_options
from lmtools.decode.run import FAILED, Decoded, DecodeOptions, decode_speech
from lmtools.verbs.help import Rare
from lmtools.verbs.options import CLUSTER
from lmtools.verbs.parser import recogniser_options
from lmtools.verbs.parts import Part, run_parts, wanted_command, writing_part

INCOMPLETE = 3  # exit status where utterances failed
SHOWN = 10  # of their names


EXAMPLES = (
    "lmtools decode --asr whisper:whisper-base --audio recordings --out lists.jsonl",
    "lmtools decode --asr vosk:vosk-model-en --audio a.wav --opts depth=20 --out a.jsonl",
)


def arguments(parser):
    parser.epilog = "\n".join(
        f"--opts of {name}: {describe_options(kind.options)}." for name, kind in RECOGNISERS.items()
    ).replace("%", "%%")
    help_text = "recogniser, and the directory of its model"
    names = "|".join(f"{name}:DIR" for name in RECOGNISERS)
    parser.add("--asr", metavar=names, required=True, help=help_text)
    help_text = (
        "recordings (FLAC, WAV, MP3, M4A ..): one file, a directory of any depth, or Kaldi's"
        " wav.scp with its `segments`, if any"
    )
    parser.add("--audio", metavar="DIR", required=True, help=help_text)
    help_text = (
        "Kaldi text with the references (default: `text` beside wav.scp, or LibriSpeech's"
        " *.trans.txt)"
    )
    parser.add("--ref", help=help_text)
    help_text = "options of the recogniser (see below)"
    parser.add_argument(
        "--opts", metavar="key=value", nargs="+", action="extend", default=[], help=help_text
    )
    parser.add("--vad")
    help_text = "lists to write, as jsonl; the same command continues a run that was stopped"
    parser.add("--out", metavar="F.jsonl", help=help_text)
    parser.add(*CLUSTER)
    help_text = (
        "stop at the first recording that cannot be decoded (default: go on, and exit with 3)"
    )
    parser.add_argument("--strict", action="store_true", help=Rare(help_text))
    parser.add(
        "--device", help="where Whisper computes: cpu, cuda, cuda:1 ... (default: %(default)s)"
    )


def run(args) -> int:
    """Decode, and say on standard error what was decoded and what could not be; return the exit
    status.
    """
    if cmd := wanted_command(args):
        return run_parts(args, cmd, [args.out])
    shard = args.shard or WHOLE
    opts = recogniser_options(args)
    options = DecodeOptions(args.asr, opts, args.device, args.nj, strict=args.strict, shard=shard)
    if not args.shard:
        return describe(decode_speech(args.audio, args.out, options, args.ref), args.out)
    reads = [args.audio, args.asr.partition(":")[2], *([args.ref] if args.ref else [])]
    with writing_part(args, args.out, reads) as part:
        if part:
            describe(decode_speech(args.audio, part[0], options, args.ref), part[0])
    return 0


def join(parts: Sequence[Part], out: str, **options) -> int:
    """Write the lists of all parts, and say what could not be decoded; return the exit status."""
    with atomic_text(out) as joined:
        for part in parts:
            with open(part.output, encoding="utf-8", newline="\n") as stream:
                shutil.copyfileobj(stream, joined)
    reports = [Path(f"{part.output}{FAILED}") for part in parts]
    failures = [line for path in reports if path.exists() for _, line in read_lines(path)]
    if not failures:
        Path(out + FAILED).unlink(missing_ok=True)
        return 0
    with atomic_text(out + FAILED) as stream:
        stream.writelines(f"{line}\n" for line in failures)
    say(f"{len(failures):,} utterances failed; {out}{FAILED} says why")
    return INCOMPLETE


def describe(done: Decoded, out: str) -> int:
    """Say what was decoded and what could not be; return the exit status."""
    long = f", {done.long} of them in segments" if done.long else ""
    say(
        f"{out}: {done.hypotheses:,} hypotheses of {done.utterances:,} utterances{long},"
        f" {done.seconds / 60:,.1f} minutes of speech, real-time factor {done.real_time_factor:.2f}"
        " a process"
    )
    if not done.failed:
        return 0
    names = [*itertools.islice(done.failed, SHOWN), *["..."] * (len(done.failed) > SHOWN)]
    say(
        f"{len(done.failed):,} of {done.utterances + len(done.failed):,} utterances failed"
        f" ({', '.join(names)}); {out}{FAILED} says why; mend them and give the command again"
    )
    return INCOMPLETE
