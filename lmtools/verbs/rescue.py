"""lmtools rescue: rescore lists by all that is needed, from text or models to a table of error
rates.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lmtools.base.atomic import hold_lock
from lmtools.base.errors import UserError
from lmtools.base.files import cannot
from lmtools.base.grammar import parse_pairs
from lmtools.base.specs import find_model, list_models
from lmtools.evaluate import show
from lmtools.evaluate.doctor import ERROR, examine, read_inputs
from lmtools.evaluate.doctor.inputs import plural
from lmtools.evaluate.metrics import METRIC_HELP, METRICS
from lmtools.formats import read
from lmtools.formats.registry import parse_specifier
from lmtools.formats.scores import hash_lists
from lmtools.rescoring.experiment import check_name
from lmtools.rescoring.features import DERIVED
from lmtools.score.load import check_packages
from lmtools.verbs.commands import repeat_options, run_command
from lmtools.verbs.options import COMPUTING, SEVERAL_LMS

NGRAM = "ngram"  # the column of the model that --text makes
ORDER = 4  # its longest n-gram, in words
NO_LM = "no-lm."  # before the files of what is tuned without language models
ORACLE = "oracle."
RERUN = "--allow-commands", "--max-line"


EXAMPLES = (
    "lmtools rescue --dev dev.jsonl --test test.jsonl --text text.txt --out rescued",
    "lmtools rescue --dev dev.jsonl --test test.jsonl --lm lm=lm --metric cer --out rescued",
)


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "Runs lmtools ngram (with --text), doctor, score, tune, rescore and evaluate, and prints"
        " each command, ready to be run by itself. --out keeps what they write: lm,"
        " NAME.dev.scores, NAME.test.scores, weights.json, test.txt (the chosen hypotheses),"
        f" test.json; {NO_LM}* without language models. The same command again goes on after a run"
        " that was stopped."
    )
    group = parser.groups["input"]
    help_text = "N-best lists with references, to tune weights on"
    group.add_argument("--dev", metavar="F", required=True, help=help_text)
    help_text = "N-best lists to choose from; with references the error rates are compared"
    group.add_argument("--test", metavar="F", required=True, help=help_text)
    help_text = f"text to estimate a {ORDER}-gram of, the column `{NGRAM}`, one sentence a line"
    parser.add("--text", help=help_text)
    parser.add("--normaliser", help="how --text, and hypotheses for its n-gram, are written")
    help_text = (
        "a model under a name of your choice; several, or one beside --text, are tuned together"
    )
    parser.add("--lm", **SEVERAL_LMS, help=help_text)
    parser.add("--metric", help=f"what is tuned and compared: {METRIC_HELP} (default: %(default)s)")
    parser.add("--out", metavar="DIR", help="directory to write")
    parser.add(*COMPUTING, "--nj")


def run(args):
    """Check the input, run each command, and print the table."""
    lms = find_lms(args)
    for lm in lms.values():  # before steps that take long
        check_packages(lm)
    referenced = check_lists(args, lms)
    with hold_lock(args.out):
        try:
            Path(args.out).mkdir(exist_ok=True)
        except OSError as error:
            raise cannot("write", args.out, error) from None
        for words in plan_commands(args, lms, referenced):
            if run_command([*map(str, words), *repeat_options(args, RERUN)]):
                raise explain_errors(dict(zip(words[1::2], map(str, words[2::2]), strict=True)))
    if referenced:
        print("\n".join(["", *draw_table(Path(args.out), args.metric)]))
    else:
        print(f"{args.out}/test.txt: not evaluated, since {args.test} has no references")


def explain_errors(doctor: Mapping[str, str]) -> UserError:
    """Return what to do about the first error that the doctor finds, by the options it had."""
    findings = examine(read_inputs(**{name[2:]: value for name, value in doctor.items()}))
    first, *more = (finding for finding in findings if finding.level == ERROR)
    line = f"{first.place}: {first.cause}; {first.remedy}"
    if "lmtools convert" in first.remedy:
        line += " (for --dev and --test alike)"
    return UserError(line + f"; {plural(more, 'more error')} above" * bool(more))


def find_lms(args) -> dict[str, str]:
    """Return the language models by the names of their columns."""
    example = "write for instance --lm tta=exp/lm/tta"
    lms = parse_pairs(args.lm, "--lm", "NAME=LM", example)
    for name, lm in lms.items():
        check_name(name, "--lm", "a name")
        if not lm.startswith("mix:") and not Path(find_model(lm).removeprefix("hf:")).exists():
            cause = f"--lm {name}={lm}: no such language model"
            raise UserError(f"{cause}; check the path or name ({list_models()})")
    if args.text:
        if NGRAM in lms:
            raise UserError(f"--lm {NGRAM}: is the name of what --text makes; give it another")
        return {NGRAM: f"{Path(args.out) / 'lm'}", **lms}
    if not lms:
        raise UserError("no language model; give --text F to estimate one, or --lm NAME=LM")
    if args.normaliser:
        raise UserError("--normaliser: is of --text, models have their own; leave it out")
    return lms


def check_lists(args, names: Iterable[str]) -> bool:
    """Return whether the test lists have references; UserError for lists that cannot be read, that
    have a score of one of the `names`, and for development lists without references.
    """
    for option, path in (("--dev", args.dev), ("--test", args.test), ("--text", args.text or "")):
        if path == "-" or parse_specifier(path):
            raise UserError(f"{option} {path}: is read several times; give a file")
    remedy = "attach them with lmtools convert --ref"
    hashes = set()
    for path in (args.dev, args.test):
        nbests = read(path)
        hashes.add(hash_lists(nbests))
        without = [nbest.utt for nbest in nbests if nbest.ref is None]
        if not nbests:
            raise UserError(f"{path}: no utterances; give the recogniser's N-best lists")
        if without and (path == args.dev or len(without) < len(nbests)):
            raise UserError(f"{path}: utterance {without[0]!r} has no reference; {remedy}")
        scores = {name for nbest in nbests for hyp in nbest.hyps for name in hyp.scores}
        if taken := [name for name in names if name in {*DERIVED, "rank", *scores}]:
            raise UserError(
                f"--lm {taken[0]}: {path} has a score of this name; write --lm OTHER=LM"
            )
    if len(hashes) == 1:
        raise UserError(
            f"--test {args.test}: has the lists of --dev, on which weights are tuned; give others"
        )
    return not without


def plan_commands(args, lms: Mapping[str, str], referenced: bool) -> Iterator[list]:
    """Yield the words of each command, the verb first, in the order in which they are run."""
    out, sets = Path(args.out), {"dev": args.dev, "test": args.test}
    text = ["--text", args.text] if args.text else []
    if text:
        normaliser = repeat_options(args, ["--normaliser"])
        yield ["ngram", *text, "--order", ORDER, *normaliser, "--out", out / "lm"]
    # the doctor reads no mixtures; lists and text look to it as a model's normaliser leaves them
    known = [word for lm in lms.values() if not lm.startswith("mix:") for word in ("--lm", lm)]
    for nbest in sets.values():
        yield ["doctor", "--nbest", nbest, *text, *known[:2]]
    # before language models score, which may take long: what cannot be tuned is refused here
    yield from plan_system(args, NO_LM, (), referenced)
    machine = repeat_options(args, (*COMPUTING, "--nj"))
    for name, lm in lms.items():
        for part, nbest in sets.items():
            scores = out / f"{name}.{part}.scores"
            yield ["score", "--nbest", nbest, "--lm", lm, "--out", scores, *machine]
    yield from plan_system(args, "", lms, referenced)
    if referenced:
        oracle, tree = out / f"{ORACLE}test.txt", out / f"{ORACLE}test.json"
        metric = "--metric", args.metric
        yield ["evaluate", "--ref", args.test, "--hyp", oracle, *metric, "--out", tree]


def plan_system(args, before: str, names, referenced: bool) -> Iterator[list]:
    """Yield the commands that tune, rescore and evaluate with the columns `names`; names of files
    begin with `before`.
    """
    out, metric = Path(args.out), ("--metric", args.metric)
    weights, text = out / f"{before}weights.json", out / f"{before}test.txt"

    def scores(part: str) -> list[str]:
        files = [f"{name}={out / f'{name}.{part}.scores'}" for name in names]
        return ["--scores", *files] if files else []

    yield ["tune", "--nbest", args.dev, *scores("dev"), *metric, "--out", weights]
    yield ["rescore", "--nbest", args.test, *scores("test"), "--weights", weights, "--out", text]
    if referenced:
        systems = ["--ref", args.test, "--hyp", text, "--against", args.test, *metric]
        oracle = ["--oracle-out", out / f"{ORACLE}test.txt"] if names else []
        yield ["evaluate", *systems, *oracle, "--out", text.with_suffix(".json")]


def draw_table(out: Path, metric: str) -> Iterator[str]:
    """Yield the lines of the table of systems: score, 95% interval, p against the first pass."""
    without, best, oracle = (
        json.loads((out / f"{before}test.json").read_text()) for before in (NO_LM, "", ORACLE)
    )
    rows = {"first pass": best["against"], "tuned without LM": without, "with LM": best}
    yield f"{'':16}  {METRICS[metric].title:>6}  95% interval    p"
    for name, tree in (rows | {"oracle": oracle}).items():
        score, interval = show.figure(tree["score"]), show.NONE
        if tree["interval"]:
            interval = "{:.2f}, {:.2f}".format(*tree["interval"])
        tests = [tree[kind] for kind in ("matched_pairs", "sacre", "bootstrap") if kind in tree]
        p = f"{tests[0]['p']:.2g}" if tests else ""
        # None: of the matched pairs test, which the exact sign test stands for
        p += " (sign test)" if tests and tests[0].get("z", 0) is None else ""
        yield f"{name:16}  {score:>6}  {interval:14}  {p}".rstrip()
