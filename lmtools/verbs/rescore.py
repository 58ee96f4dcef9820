"""lmtools rescore: choose hypotheses with tuned weights."""

from dataclasses import replace
from functools import partial

from lmtools.base.atomic import is_stream
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pair
from lmtools.base.log import say, say_lines
from lmtools.base.options import fill
from lmtools.base.specs import LMSpec
from lmtools.evaluate.metrics import METRICS
from lmtools.formats import FORMATS, kaldi_text, read, write
from lmtools.formats.scores import hash_lists
from lmtools.rescoring.defaults import PREFIX, TUNE, WHISPER, load_weights
from lmtools.rescoring.experiment import of_system
from lmtools.rescoring.features import NEAR, ScoreColumns, make_columns
from lmtools.rescoring.lists import rescore_lists, warn_empty
from lmtools.rescoring.margins import find_changes, write_changes
from lmtools.types import TOTAL
from lmtools.verbs.experiment import load_plans, read_all
from lmtools.verbs.options import COMPUTING
from lmtools.verbs.parser import add_lm, add_phrases, parse_phrases

# formats of other recognisers and of translators, for which default weights of Whisper are wrong
OTHERS = (
    "kaldi-nbest",
    "espnet2",
    "icefall",
    "moses",
    "marian",
    "fairseq",
    "srilm",
    "nemo",
    "wenet",
)
CHANGES = ".changes"  # behind the name of the output, of new hypotheses that won
WRITTEN = ".written"  # behind the name of the output, of what the recogniser wrote

EXAMPLES = (
    "lmtools rescore --nbest test.jsonl --scores lm=test.scores --weights weights.json --out t.txt",
    "lmtools rescore --nbest test.jsonl --lm lm=lm --weights weights.json --out t.txt",
)


def arguments(parser):
    parser.add("--nbest", "--format", "--scores", "--experiment")
    add_phrases(parser)
    help_text = (
        "weights that `lmtools tune` wrote; or default weights, if you have no references:"
        " default:whisper (Whisper's lists, one LM), default:phrases (any lists, only --phrases)"
    )
    parser.add("--weights", required=True, metavar="F.json", help=help_text)
    help_text = (
        "chosen hypotheses to write, as Kaldi text; - prints them. If the lists keep what the"
        f" recogniser wrote (case, punctuation), OUT{WRITTEN} has the same in its writing."
        f" If the lists have new hypotheses (the score `near`), OUT{CHANGES} lists those that"
        " won: utt, from, to, source, margin"
    )
    parser.add("--out", help=help_text)
    help_text = "also write the lists in their new order, with all scores and their `total`"
    parser.add("--nbest-out", help=help_text)
    parser.add("--nbest-to")
    help_text = "score the column NAME of the weights here, with this model"
    add_lm(parser, required=False, metavar="NAME=LM", help=help_text)
    parser.add(*COMPUTING, "--nj")


def run(args):
    """Read, rescore, write, and say with which weights."""
    if args.lm and args.experiment:
        raise UserError("--experiment: --lm is for one system; score the columns by lmtools score")
    form = args.format or FORMATS.detect(args.nbest)
    nbests = read(args.nbest, form)
    if args.weights == PREFIX + WHISPER and form.partition(":")[0] in OTHERS:
        say(
            f"warning: {args.nbest}: lists in the format {form} are hardly Whisper's, whose scores"
            f" {args.weights} is for; {TUNE}"
        )
    columns, systems = read_all(args, nbests, load_plans(args))
    if args.lm:
        columns, systems = add_column(args, nbests, columns, systems)
    tuned = {
        system: load_weights(of_system(args.weights, system), nbests, columns) for system in systems
    }
    place = partial(of_system, args.weights)
    warnings, chosen = rescore_lists(
        nbests, columns, systems, tuned, source=args.nbest, place=place
    )
    say_lines(warnings)
    for system, lists, doubts in chosen:
        lists = spell_if_wished(lists, columns)
        write_choice(args, nbests, lists, tuned[system], system=system, warnings=doubts)


def spell_if_wished(lists, columns):
    """Return the lists, with phrases as a glossary writes them if its options say so."""
    glossary = columns.glossary
    return glossary.spell_lists(lists) if glossary and glossary.spec.spelling else lists


def add_column(args, nbests, columns: ScoreColumns, systems) -> tuple[ScoreColumns, dict]:
    """Return the columns with that of --lm, which is scored here, and the plan of the system."""
    from lmtools.api.lm import divide_scores
    from lmtools.score import load, score_texts
    from lmtools.score.lists import hypothesis_texts, warn_scored

    example = "write for instance --lm tta=exp/lm/tta"
    name, lm = parse_pair(args.lm, "--lm", "NAME=LM", example)
    if name in columns.values:
        raise UserError(f"--lm {name}: --scores has a column of this name; leave one out")
    computing, texts = fill(Computing, args), hypothesis_texts(nbests, written=False)
    scorer = load(LMSpec.parse(lm), computing)
    flat = score_texts(texts, scorer, computing)
    counts = int(flat.unknown.sum()), int(flat.tokens.sum()) - len(texts)
    warn_scored(args.nbest, texts, counts, scorer, lists=True)
    tables, paths = {name: divide_scores(nbests, flat)}, {name: lm}
    new = make_columns(tables, paths, nbests, args.nbest)
    parts = ("values", "signatures", "paths")
    both = {part: {**getattr(columns, part), **getattr(new, part)} for part in parts}
    plan = systems[None]
    return replace(columns, **both), {None: replace(plan, columns=(*plan.columns, name))}


def write_choice(args, nbests, lists, weights, system, warnings):
    out = of_system(args.out, system)
    # first, since it may refuse: a tokeniser of the metric may not be installed here
    told = describe_choice(nbests, lists, weights, args.nbest, out=out, system=system)
    messages = [*warnings, *told]
    if args.nbest_out:
        write(lists, of_system(args.nbest_out, system), args.nbest_to)
    chosen = {nbest.utt: nbest.hyps[0].text if nbest.hyps else "" for nbest in lists}
    kaldi_text.write(chosen, out)
    before = "" if system is None else f"{system}: "
    spelled = args.phrases and parse_phrases(args.phrases).spelling
    messages += write_new(lists, out)
    messages += write_written(nbests, lists, out, spelled=spelled)
    say_lines(before + line for line in messages)


def write_new(lists, out):
    """Write which new hypotheses were chosen, where lists have some, beside `out`; what to tell."""
    if not any(NEAR in hyp.scores for nbest in lists for hyp in nbest.hyps):
        return []
    if is_stream(out) or not all(TOTAL in nbest.hyps[0].scores for nbest in lists if nbest.hyps):
        return [
            f"OUT{CHANGES}, the list of new hypotheses that won, is written beside a file, with"
            " --scores: not here"
        ]
    changes = [*find_changes(lists)]
    write_changes(changes, f"{out}{CHANGES}")
    return [f"{out}{CHANGES}: {len(changes)} new hypotheses won"]


def write_written(nbests, lists, out, spelled):
    """Write what the recogniser wrote, where it differs, beside `out`; what to tell of it."""
    if all(hyp.written is None for nbest in (*nbests, *lists) for hyp in nbest.hyps):
        return []
    if is_stream(out):
        return ["the recogniser's own writing is in --nbest-out, or beside --out if that is a file"]
    texts = {nbest.utt: nbest.hyps[0].display if nbest.hyps else "" for nbest in lists}
    kaldi_text.write(texts, f"{out}{WRITTEN}")
    if spelled:
        return [f"{out}{WRITTEN}: the same, phrases as the glossary writes them"]
    return [f"{out}{WRITTEN}: the same as the recogniser wrote it"]


def describe_choice(nbests, lists, weights, source, out, system):
    dev = weights.dev
    metric = METRICS[weights.metric]
    if weights.tuned:
        yield (
            f"weights tuned on {dev.path} ({dev.utterances} utterances, {metric.title}"
            f" {dev.first_pass:.2f} -> {dev.score:.2f})"
        )
        yield metric.signature
    else:
        values = ", ".join(f"{name} {value:g}" for name, value in weights.features.items() if value)
        yield f"{dev.path}: {values}; with references of 20 utterances and more, tune your own"
    if weights.folds:
        held = sum(len(rows) for _, rows in weights.folds.divide([nbest.utt for nbest in nbests]))
        yield (
            f"{weights.folds.describe()}: {held} of {len(nbests)} utterances by weights that did"
            " not see them, the rest by those of all"
        )
    elif system is None and hash_lists(nbests) == dev.sha256:  # an experiment's report says it
        yield (
            f"warning: {source} is the set that the weights were tuned on; its figures flatter,"
            " report those of another set"
        )
    yield from warn_empty(nbests, "gives")
    changed = sum(
        bool(old.hyps) and old.hyps[0].text.split() != new.hyps[0].text.split()
        for old, new in zip(nbests, lists, strict=True)
    )
    yield f"{out}: {len(lists)} utterances, {changed} changed"
