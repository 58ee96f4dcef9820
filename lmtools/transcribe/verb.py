"""lmtools transcribe: text, subtitles and times of words of recordings."""

from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.transcribe.run import Transcribed, transcribe_all
from lmtools.transcribe.transcriber import Transcriber
from lmtools.transcribe.transcript import WRITERS
from lmtools.verbs.parser import add_lm, add_phrases, recogniser_options

INCOMPLETE = 3  # exit status where recordings failed
FORMATS = "txt,srt,vtt,tsv,json"
NO_LM = "none"

EXAMPLES = (
    "lmtools transcribe a.wav --out text",
    "lmtools transcribe recordings --lm lm --to srt,json --out subtitles",
)


def arguments(parser):
    """Declare the verb's options."""
    help_text = (
        "a recording of any length (M4A, MP3, MP4, WebM, Opus, WAV, FLAC ..), a directory of them,"
        " or Kaldi's wav.scp"
    )
    parser.add_argument("input", metavar="RECORDING|DIR", help=help_text)
    help_text = (
        "recogniser, and the directory of its model (default: what utils/install_asr.sh fetched)"
    )
    parser.add("--asr", metavar="whisper:DIR", help=help_text)
    add_phrases(parser)
    help_text = "options of the recogniser, as of lmtools decode"
    parser.add_argument(
        "--opts", metavar="key=value", nargs="+", action="extend", default=[], help=help_text
    )
    parser.add("--vad")
    help_text = (
        "language model of the second pass, under a name of its column if weights have several;"
        f" {NO_LM}: the recogniser's own answer (default: the installed English 4-gram, if any)"
    )
    takes = {"action": "append", "default": None, "required": False, "metavar": "[NAME=]LM"}
    add_lm(parser, **takes, help=help_text)
    parser.add("--ear")
    help_text = "weights that `lmtools tune` wrote (default: default:whisper, which need no tuning)"
    parser.add("--weights", metavar="F.json", help=help_text)
    help_text = "how hypotheses are written for language models (default: librispeech)"
    parser.add("--normaliser", default="librispeech", help=help_text)
    help_text = (
        "directory to write, a file a recording and format; the same command goes on after a run"
        " that was stopped"
    )
    parser.add("--out", metavar="DIR", help=help_text)
    help_text = f"formats to write: {', '.join(WRITERS)} (default: %(default)s)"
    parser.add("--to", metavar="FMT,..", default=FORMATS, help=help_text)
    help_text = "also list what the second pass changed, in NAME.changes.tsv"
    parser.add_argument("--changes", action="store_true", help=help_text)
    parser.add("--device", help="where Whisper computes: cpu, cuda .. (default: %(default)s)")


def run(args) -> int:
    """Transcribe, and say what was written; return the exit status."""
    formats = list(dict.fromkeys([*args.to.split(","), *["changes"] * args.changes]))
    if unknown := [name for name in formats if name not in WRITERS]:
        raise UserError(f"--to {unknown[0]}: no such format; give {', '.join(WRITERS)}")
    lms = [] if args.lm == [NO_LM] else args.lm
    transcriber = Transcriber(
        args.asr, lms, args.weights, args.phrases,
        opts=recogniser_options(args), device=args.device, normaliser=args.normaliser, ear=args.ear,
    )  # fmt: skip
    say(f"recogniser {transcriber.asr}; {describe(transcriber, args.lm)}")
    done = transcribe_all(args.input, args.out, transcriber, formats)
    return tell(done, args.out)


def describe(transcriber: Transcriber, lms) -> str:
    """Return what the second pass is, or that there is none."""
    if transcriber.second.active:
        return f"second pass: {transcriber.second.describe()}"
    if lms:
        return "no second pass: this is the recogniser's own answer"
    return (
        "no language model is installed, so this is the recogniser's own answer; `make"
        " models-small` makes one (docs/models.md), --lm takes any"
    )


def tell(done: Transcribed, out: str) -> int:
    """Say what was written and what failed; return the exit status."""
    say(
        f"{out}: {done.recordings} recordings, {done.seconds / 60:,.1f} minutes, {done.segments:,}"
        f" segments, {done.changed:,} changed by the second pass"
    )
    if not done.failed:
        return 0
    say(f"{len(done.failed)} failed ({', '.join([*done.failed][:10])}); the reasons are above")
    return INCOMPLETE
