"""lmtools convert: N-best lists or lattices from one format to another; their texts normalised,
with references, cut or merged.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.evaluate.nbest import share_references
from lmtools.formats import FORMATS, edits, lists, registry
from lmtools.formats import read as read_nbests
from lmtools.formats.lattices import LATTICES
from lmtools.formats.texts import read_sentences, read_texts
from lmtools.text import NORMALISERS
from lmtools.text.marks import find_marks
from lmtools.text.normaliser import detokeniser
from lmtools.text.unify import unifier
from lmtools.types import NBest
from lmtools.verbs.options import choice, switch, value
from lmtools.verbs.parser import add_normaliser, add_references, normaliser_of

CASES = {"upper": str.upper, "lower": str.lower, "sentence": edits.capitalise}
NORMALISED = "normalised"
KINDS = {"N-best lists": FORMATS, "lattices": LATTICES}
Edit = Callable[[NBest], NBest]
Describe = Callable[[Sequence[NBest], Sequence[NBest]], str]  # of the lists before and after

# Edits of lists in the order of --help; None: the option is one of GROUPS
EDITS: dict[str, dict | None] = {
    "--unify": None,
    "--drop-words": value(
        "FILE",
        "remove the words in FILE, one on each line, such as [noise], <unk> and SIL, from"
        " hypotheses and references; arcs of lattices lose their word",
    ),
    "--map-words": None,
    "--drop-marks": switch(
        "remove what stands for no word from hypotheses and references: [Music], (laughter), <unk>,"
        " <|endoftext|>, *sighs*, ♪"
    ),
    "--detokenise": value(
        "LANG",
        "undo the tokenisation of Moses's scripts, with its escapes (&apos;) and split hyphens"
        " (@-@), in hypotheses of language LANG (en, de, fr ..; for subword marks see --format)",
        rare=True,
    ),
    "--detokenise-ref": value(
        "LANG", "do the same to the references, which are often not tokenised", rare=True
    ),
    "--depth": None,
    "--dedup": choice(
        ("words", NORMALISED),
        "merge hypotheses with the same words (the default, words; write it after IN and OUT), or"
        " with the same words after the normaliser (normalised; if no normaliser is named,"
        " librispeech); the best score stays, at the best rank",
        nargs="?",
        const="words",
    ),
}

EXAMPLES = (
    "lmtools convert dev.jsonl lower.jsonl --ref dev.ref --normaliser librispeech",
    "lmtools convert dev.jsonl kaldi-dev --to kaldi-nbest --depth 50",
)


def arguments(parser):
    parser.epilog = "\n\n".join(
        f"Formats of {kind}:\n{registry.describe_formats(formats)}"
        for kind, formats in KINDS.items()
    )
    place = "file, directory or Kaldi"
    parser.add_argument("input", metavar="IN", help=f"{place} rspecifier; - is standard input")
    parser.add_argument("output", metavar="OUT", help=f"{place} wspecifier; - is standard output")
    parser.add("--format")
    add_references(parser, nargs="+")
    parser.add("--to", default=None, help="format of OUT (default: jsonl, or slf for lattices)")
    for name, declared in EDITS.items():
        if declared is None:
            parser.add(name)
        else:
            parser.add_argument(name, **declared)
    add_normaliser(
        parser,
        "applied to hypotheses and references, after all other edits but --dedup and --depth."
        " Scores stay. Ids and times of tokens are dropped where a text changes. jsonl keeps what"
        " the recogniser wrote as `written`",
        choices=(*CASES, "keep"),
        help="change the case of the hypotheses (with other options of the normaliser: of the"
        " references too); sentence: upper case for the first letter, for truecased text",
    )


def find_kind(spec: str) -> str:
    """Return the kind of what the format `spec` holds."""
    name = spec.partition(":")[0]
    for kind, formats in KINDS.items():
        if name in formats:
            return kind
    raise UserError(
        f"{spec}: no such format; known are {', '.join(FORMATS)} and, of lattices,"
        f" {', '.join(LATTICES)}"
    )


def run(args):
    """Read, edit and write; print what was written on standard error."""
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
        say(convert_lattices(args, source, target))
    else:
        say(convert_lists(args, source, target))


def refuse_for_lattices(args) -> None:
    """Raise UserError for options that lattices do not have."""
    refs = [args.ref, args.ref_lines, args.detokenise_ref]
    edits = [args.depth, args.dedup, args.drop_marks, args.detokenise]
    if any([*refs, *edits, args.case == "sentence"]):
        options = "references, --depth, --dedup, --drop-marks, --detokenise and --case sentence"
        raise UserError(
            f"{args.input}: {options} are for N-best lists, not for lattices; leave them out"
        )


def convert_lists(args, source: str, target: str) -> str:
    """Convert N-best lists; return the message on what was written."""
    nbests = read_nbests(args.input, source)
    if not nbests:
        raise UserError(f"{args.input}: no utterances; give the recogniser's N-best lists")
    nbests, message = attach_references(args, nbests)
    for edit, describe in list(plan_edits(args)):
        before, nbests = nbests, [edit(nbest) for nbest in nbests]
        message += describe(before, nbests) if describe else ""
    registry.find_format(target, FORMATS).write(nbests, args.output)
    hyps = sum(len(nbest.hyps) for nbest in nbests)
    bare = hyps > len(nbests) and not any(hyp.scores for nbest in nbests for hyp in nbest.hyps)
    scores = ", no scores" if bare else ""
    return f"{args.output}: {len(nbests)} utterances, {hyps} hypotheses{scores}{message}"


def plan_edits(args) -> Iterator[tuple[Edit, Describe | None]]:
    if args.unify:
        unify = unifier(args.unify)
        yield partial(edits.rewrite_list, hyps=unify, refs=unify), None
    if args.drop_marks:
        yield edits.strip_marks, describe_marks
    if args.drop_words:
        words = edits.read_words(args.drop_words)
        yield partial(edits.drop_words, words=words), describe_words
    if args.detokenise_ref:
        yield partial(edits.rewrite_list, refs=detokeniser(args.detokenise_ref)), None
    if args.detokenise:
        yield partial(edits.rewrite_list, hyps=detokeniser(args.detokenise)), None
    if has_normaliser_options(args):
        normaliser = normaliser_of(args)
        yield partial(edits.rewrite_list, hyps=normaliser, refs=normaliser, keep=True), None
    elif args.case and args.case != "keep":
        keep = args.case != "sentence"
        yield partial(edits.rewrite_list, hyps=CASES[args.case], keep=keep), None
    if args.map_words:
        spell = partial(edits.spell, spellings=edits.read_spellings(args.map_words))
        yield partial(edits.rewrite_list, hyps=spell, refs=spell, keep=True), None
    if args.dedup:
        merge = partial(edits.merge_equal, normalise=merged_by(args))
        yield merge, partial(describe_hypotheses, "merged")
    if args.depth:
        yield partial(edits.cut_list, depth=args.depth), None


def attach_references(args, nbests: Sequence[NBest]) -> tuple[Sequence[NBest], str]:
    """Return lists with the references asked for, and what to tell of unused ones."""
    if args.ref_lines:
        lines = {path: read_sentences(path) for path in args.ref_lines}
        return lists.attach_lines(nbests, lines, args.input), ""
    if not args.ref:
        return nbests, ""
    refs = share_references(nbests, read_texts(args.ref))
    nbests = lists.attach_refs(nbests, refs, args.input, args.ref)
    unused = len(refs) - len(nbests)
    message = f", {unused:,} of {len(refs):,} references not used: they have no list"
    return nbests, message if unused else ""


def merged_by(args) -> Callable[[str], str]:
    """Return the normaliser by which --dedup compares, none if texts have it already."""
    if args.dedup != NORMALISED:
        return str
    return normaliser_of(args) if has_normaliser_options(args) else NORMALISERS["librispeech"]


def describe_marks(before: Sequence[NBest], after: Sequence[NBest]) -> str:
    count = sum(len(find_marks(text)) for nbest in before for text in edits.texts_of(nbest))
    return f", {count:,} marks dropped"


def describe_words(before: Sequence[NBest], after: Sequence[NBest]) -> str:
    counts = [
        sum(len(text.split()) for nbest in nbests for text in edits.texts_of(nbest))
        for nbests in (before, after)
    ]
    return f", {counts[0] - counts[1]:,} words dropped"


def describe_hypotheses(loss: str, before: Sequence[NBest], after: Sequence[NBest]) -> str:
    less = [len(old.hyps) - len(new.hyps) for old, new in zip(before, after, strict=True)]
    return f", {sum(less):,} (in {sum(map(bool, less)):,} lists) {loss}"


def has_normaliser_options(args) -> bool:
    """Return whether the normaliser has options besides --case; UserError for unfit ones."""
    given = any((args.normaliser, args.punctuation, args.apostrophe, args.unicode_form))
    if given and args.case == "sentence":
        raise UserError(
            "--case sentence: is no option of the normaliser; leave one or the other out"
        )
    return given


def convert_lattices(args, source: str, target: str) -> str:
    """Convert lattices one by one; return the message on what was written."""
    count = arcs = dropped = 0
    drop = edits.read_words(args.drop_words) if args.drop_words else ()
    spellings = edits.read_spellings(args.map_words) if args.map_words else {}
    case = CASES.get(args.case, str)
    change = normaliser_of(args) if has_normaliser_options(args) else case
    unify = unifier(args.unify) if args.unify else str

    def rewrite(word: str) -> str:
        return "" if word in drop else edits.spell(change(unify(word)), spellings)

    def counted():
        nonlocal count, arcs, dropped
        for lattice in registry.find_format(source, LATTICES).read(args.input):
            count, arcs = count + 1, arcs + len(lattice.words)
            dropped += sum(word in drop for word in lattice.words)
            yield edits.rewrite_arcs(lattice, rewrite)
        if not count:
            raise UserError(f"{args.input}: no lattices; give the recogniser's")

    registry.find_format(target, LATTICES).write(counted(), args.output)
    return f"{args.output}: {count} lattices, {arcs} arcs" + (
        f", {dropped:,} of them without their words" if drop else ""
    )
