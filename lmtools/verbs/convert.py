"""lmtools convert: N-best lists or lattices from one format to another; their texts normalised,
with references, cut or merged.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial

from lmtools.errors import UserError
from lmtools.formats import FORMATS, lists, merging, plain, registry, rewriting
from lmtools.formats import read as read_nbests
from lmtools.formats.lattices import LATTICES
from lmtools.formats.texts import read_texts
from lmtools.text import NORMALISERS
from lmtools.text.detokenise import detokeniser
from lmtools.text.normaliser import parse_normaliser
from lmtools.text.unify import unifier
from lmtools.types import NBest
from lmtools.verbs.help import Rare
from lmtools.verbs.options import add_normaliser, add_references, normaliser_of

CASES = {"upper": str.upper, "lower": str.lower, "sentence": rewriting.capitalise}
NORMALISED = "normalised"
KINDS = {"N-best lists": FORMATS, "lattices": LATTICES}


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = "\n\n".join(
        f"Formats of {kind}:\n{registry.describe_formats(formats)}"
        for kind, formats in KINDS.items()
    )
    parser.add_argument(
        "input", metavar="IN", help="file, directory or Kaldi rspecifier; - is standard input"
    )
    parser.add_argument(
        "output", metavar="OUT", help="file, directory or Kaldi wspecifier; - is standard output"
    )
    parser.add("--format")
    add_references(parser, nargs="+")
    parser.add("--to", default=None, help="format of OUT (default: jsonl, or slf for lattices)")
    parser.add("--unify")
    about = (
        "words to take out of hypotheses and references as they are read, one a line: [noise],"
        " <unk>, SIL ..; arcs of lattices get none"
    )
    parser.add_argument("--drop-words", metavar="FILE", help=about)
    parser.add("--map-words")
    about = (
        "take out of hypotheses and references what stands for no word: [Music], (laughter), <unk>,"
        " <|endoftext|>, *sighs*, ♪"
    )
    parser.add_argument("--drop-marks", action="store_true", help=about)
    about = (
        "undo the tokenisation, escapes (&apos;) and split hyphens (@-@) that Moses's scripts"
        " made in the hypotheses (en, de, fr ..; subword marks: options of --format)"
    )
    parser.add_argument("--detokenise", metavar="LANG", help=Rare(about))
    about = "the same for the references, which are often given without tokenisation"
    parser.add_argument("--detokenise-ref", metavar="LANG", help=Rare(about))
    parser.add("--depth")
    about = (
        "merge hypotheses of the same words, or of words that are the same once normalised"
        " (`normalised`: by options of the normaliser, else as --normaliser librispeech, case and"
        " punctuation apart); the best score stays, at the best rank (default: words; write"
        " --dedup alone after IN and OUT)"
    )
    ways = ("words", NORMALISED)
    parser.add_argument("--dedup", nargs="?", const="words", choices=ways, help=about)
    about = (
        "with --dedup, each has a score `mass`: the log of the summed probabilities of those merged"
    )
    parser.add_argument("--mass", action="store_true", help=Rare(about))
    about = (
        "leave out hypotheses that say words again and again (`a poor poor poor poor poor poor`),"
        " but the last of a list"
    )
    parser.add_argument("--drop-loops", action="store_true", help=Rare(about))
    add_normaliser(
        parser,
        "what is done to hypotheses and references alike, after all else but --dedup and --depth;"
        " equal hypotheses stay unless --dedup. Scores stay; what a format keeps of each token"
        " (ids, times) goes where a text changes. What the recogniser wrote stays in jsonl as"
        " `written` beside the new text",
        choices=(*CASES, "keep"),
        help="of hypotheses (with options of the normaliser: of references, too); `sentence`: only"
        " the first letter, upper, if truecased",
    )
    about = "the named set for references instead; none: they stay as they are"
    parser.groups["normaliser"].add_argument("--normaliser-ref", metavar="NAME", help=Rare(about))


def find_kind(spec: str) -> str:
    """The kind of what the format `spec` holds."""
    name = spec.partition(":")[0]
    for kind, formats in KINDS.items():
        if name in formats:
            return kind
    raise UserError(
        f"{spec}: no such format; known are {', '.join(FORMATS)} and, of lattices,"
        f" {', '.join(LATTICES)}"
    )


def run(args):
    """Read, edit, write, and say on standard error what was written."""
    source = args.format or registry.detect(args.input, FORMATS | LATTICES)
    kind = find_kind(source)
    target = args.to or {"N-best lists": "jsonl", "lattices": "slf"}[kind]
    if find_kind(target) != kind:
        remedy = (
            "take lists from lattices with `lmtools lattice nbest`"
            if kind == "lattices"
            else "choose a format of N-best lists"
        )
        raise UserError(f"{args.input}: format {source} holds {kind}, {target} does not; {remedy}")
    if kind == "lattices":
        refuse_for_lattices(args)
        print(convert_lattices(args, source, target), file=sys.stderr)
    else:
        print(convert_lists(args, source, target), file=sys.stderr)


def refuse_for_lattices(args) -> None:
    """UserError for options that lattices do not have."""
    refs = [args.ref, args.ref_lines, args.detokenise_ref, args.normaliser_ref]
    edits = [args.depth, args.dedup, args.mass, args.drop_loops, args.drop_marks, args.detokenise]
    if any([*refs, *edits, args.case == "sentence"]):
        options = (
            "references, --depth, --dedup, --mass, --drop-loops, --drop-marks, --detokenise and"
            " --case sentence"
        )
        raise UserError(
            f"{args.input}: {options} are for N-best lists, not for lattices; leave them out"
        )


def convert_lists(args, source: str, target: str) -> str:
    """Convert N-best lists; what to say of it."""
    nbests = read_nbests(args.input, source)
    if not nbests:
        raise UserError(f"{args.input}: no utterances; give the recogniser's N-best lists")
    nbests, told = attach_references(args, nbests)
    if args.unify:
        unify = unifier(args.unify)
        nbests = rewriting.rewrite_lists(nbests, unify, unify)
    if args.drop_marks:
        nbests, count = rewriting.drop_marks(nbests)
        told += f", {count:,} marks dropped"
    if args.drop_words:
        nbests, count = rewriting.drop_words(nbests, rewriting.read_words(args.drop_words))
        told += f", {count:,} words dropped"
    if args.detokenise_ref:
        nbests = rewriting.rewrite_lists(nbests, refs=detokeniser(args.detokenise_ref))
    if args.detokenise:
        nbests = rewriting.rewrite_lists(nbests, detokeniser(args.detokenise))
    if has_normaliser_options(args):
        hyps = normaliser_of(args)
        refs = parse_normaliser(args.normaliser_ref) if args.normaliser_ref else hyps
        refs = None if args.normaliser_ref == "none" else refs
        nbests = rewriting.rewrite_lists(nbests, hyps, refs, keep=True)
    elif args.case and args.case != "keep":
        nbests = rewriting.rewrite_lists(nbests, CASES[args.case], keep=args.case != "sentence")
    if args.map_words:
        map_words = partial(rewriting.spell, spellings=rewriting.read_spellings(args.map_words))
        nbests = rewriting.rewrite_lists(nbests, map_words, map_words, keep=True)
    if args.mass and not args.dedup:
        raise UserError("--mass: is of hypotheses that are merged; give --dedup, too")
    if args.dedup:
        before = nbests
        nbests = merging.merge_equal(nbests, merged_by(args), args.input, args.mass)
        told += f", {describe_loss(before, nbests)} merged"
    if args.drop_loops:
        before = nbests
        nbests = merging.drop_loops(nbests)
        told += f", {describe_loss(before, nbests)} dropped as loops"
    if args.depth:
        nbests = lists.cut_lists(nbests, args.depth)
    registry.find_format(target, FORMATS).write(nbests, args.output)
    return (
        f"{args.output}: {len(nbests)} utterances, {sum(len(n.hyps) for n in nbests)}"
        f" hypotheses{told}"
    )


def attach_references(args, nbests: Sequence[NBest]) -> tuple[Sequence[NBest], str]:
    """Return the lists with the references that the command line names, and what to say of those
    that no list has.
    """
    if args.ref_lines:
        lines = {path: plain.read(path) for path in args.ref_lines}
        return lists.attach_lines(nbests, lines, args.input), ""
    if not args.ref:
        return nbests, ""
    refs = read_texts(args.ref)
    nbests = lists.attach_refs(nbests, refs, args.input, args.ref)
    unused = lists.count_unused(nbests, refs)
    message = f", {unused:,} of {len(refs):,} references not used: they have no list"
    return nbests, message if unused else ""


def merged_by(args) -> Callable[[str], str]:
    """What makes the hypotheses equal that --dedup merges; texts that were normalised already need
    no more.
    """
    if args.dedup != NORMALISED:
        return str
    return normaliser_of(args) if has_normaliser_options(args) else NORMALISERS["librispeech"]


def describe_loss(before: Sequence[NBest], after: Sequence[NBest]) -> str:
    """How many hypotheses there are less, in how many lists."""
    less = [len(old.hyps) - len(new.hyps) for old, new in zip(before, after, strict=True)]
    return f"{sum(less):,} (in {sum(map(bool, less)):,} lists)"


def has_normaliser_options(args) -> bool:
    """Whether options of the normaliser other than --case are given; UserError for those that do
    not go with them.
    """
    given = any((args.normaliser, args.punctuation, args.apostrophe, args.unicode_form))
    if given and args.case == "sentence":
        raise UserError(
            "--case sentence: is no option of the normaliser; leave one or the other out"
        )
    if args.normaliser_ref and not given:
        raise UserError(
            "--normaliser-ref: is in place of the normaliser of hypotheses; give --normaliser too"
        )
    return given


def convert_lattices(args, source: str, target: str) -> str:
    """Convert lattices one by one; what to say of them."""
    count = arcs = dropped = 0
    drop = rewriting.read_words(args.drop_words) if args.drop_words else ()
    spellings = rewriting.read_spellings(args.map_words) if args.map_words else {}
    case = CASES.get(args.case, str)
    change = normaliser_of(args) if has_normaliser_options(args) else case
    unify = unifier(args.unify) if args.unify else str

    def counted():
        nonlocal count, arcs, dropped
        for lattice in registry.find_format(source, LATTICES).read(args.input):
            count, arcs = count + 1, arcs + len(lattice.words)
            dropped += sum(word in drop for word in lattice.words)
            yield rewriting.rewrite_arcs(
                lattice,
                lambda word: (
                    "" if word in drop else rewriting.spell(change(unify(word)), spellings)
                ),
            )
        if not count:
            raise UserError(f"{args.input}: no lattices; give the recogniser's")

    registry.find_format(target, LATTICES).write(counted(), args.output)
    return f"{args.output}: {count} lattices, {arcs} arcs" + (
        f", {dropped:,} of them without their words" if drop else ""
    )
