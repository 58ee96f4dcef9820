"""`lmtools corpus`: normalise, segment and binarise text, or a text and its source; and what a text
shares with the references of sets.
"""

import argparse
import re
from collections.abc import Sequence

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.evaluate.inputs import load, references
from lmtools.formats import detect
from lmtools.formats.texts import KALDI
from lmtools.text.blocks import read_again, read_text
from lmtools.text.corpus import (
    Corpus,
    NoSentence,
    binarise,
    binarise_pairs,
    binarise_shards,
    join_corpora,
    write_index,
    write_shards,
)
from lmtools.text.overlap import JudgedSentences, Overlap, write_others
from lmtools.text.subword import load_subword
from lmtools.text.unknown import doubt_pieces, warn_unknown
from lmtools.verbs.numbers import size
from lmtools.verbs.options import SEVERAL_TEXTS
from lmtools.verbs.parts import Part, run_parts, wanted_command, writing_part

EXAMPLES = (
    "lmtools corpus --text text.txt --subword bpe --out train.bin",
    "lmtools corpus --text text.txt --ref dev.jsonl test.ref --leave-out-overlap --out train.txt",
)
SHOWN = 5  # lines left out that are printed


def arguments(parser):
    parser.add("--text", **SEVERAL_TEXTS, required=True)
    help_text = (
        "for a translation model: the source of each line of the text, in files with as many lines"
        " as those of --text"
    )
    parser.add("--source", **SEVERAL_TEXTS, help=help_text)
    parser.add("--kaldi")
    parser.add("--subword", required=False)
    help_text = (
        "sets that models will be judged by (lists with references, Kaldi text, or text): count"
        " what the text shares with each, runs of 7 and 8 words and whole sentences"
    )
    parser.add("--ref", nargs="+", metavar="SET", help=help_text)
    help_text = "write the text without the lines that share a run of 7 words, or a sentence"
    parser.add_argument("--leave-out-overlap", action="store_true", help=help_text)
    parser.add("--out", metavar="F.bin", required=False, help="file to write: F.bin; text F.txt")
    help_text = (
        "write a shard to F.bin.shards for every SIZE (such as 500M) bytes of text, and their index"
        " to F.bin"
    )
    parser.add_argument("--shard-size", type=size, metavar="SIZE", help=help_text)
    parser.add("--nj", help="number of processes that encode (default: %(default)s)")
    parser.add("--cmd", "--shard")


def run(args: argparse.Namespace) -> int:
    check_options(args)
    if args.ref and not args.shard:
        tell_overlap(args)
    if not args.subword:
        return 0
    if cmd := wanted_command(args):
        return run_parts(args, cmd, [args.out])
    subword = load_subword(args.subword)
    if args.shard:
        reads = [*args.text, *(args.source or ()), args.subword]
        with writing_part(args, args.out, reads) as part:
            if part:
                write_part(args, subword, *part)
        return 0
    places = subword, args.out
    if args.source:
        corpus = binarise_pairs(args.text, args.source, *places, args.kaldi, args.nj)
    elif args.shard_size:
        corpus = binarise_shards(args.text, *places, args.shard_size, args.kaldi, args.nj)
    else:
        corpus = binarise(args.text, *places, args.kaldi, args.nj)
    describe(corpus, args.out, args.text, args.source or [], kaldi=args.kaldi, subword=args.subword)
    return 0


def check_options(args: argparse.Namespace) -> None:
    """Raise UserError for options that do not go together."""
    if args.source and args.shard_size:
        raise UserError("--shard-size: a corpus of pairs is one file; leave it or --source out")
    if args.leave_out_overlap and (args.subword or args.source or not (args.ref and args.out)):
        raise UserError("--leave-out-overlap: writes text; give --text, --ref and --out alone")
    if args.ref and "-" in args.text:
        raise UserError("--text -: is read twice with --ref; write it to a file")
    if args.leave_out_overlap and args.out in ("-", *args.text):
        raise UserError(f"--out {args.out}: give another file; counts are printed")
    if not (args.subword and args.out) and not args.ref:
        raise UserError("--subword, --out: a corpus needs both; --ref alone checks a text")
    if bool(args.subword) != bool(args.out) and not args.leave_out_overlap:
        raise UserError("--subword, --out: give both or none")


def tell_overlap(args: argparse.Namespace) -> None:
    """Print what the text shares with each set, and write the rest of it if asked for."""
    sets = {path: read_sentences(path) for path in args.ref}
    if empty := [path for path, sentences in sets.items() if not any(map(str.strip, sentences))]:
        raise UserError(f"{empty[0]}: no sentence in it; give references, or text")
    judged = JudgedSentences(sets)
    overlap = judged.find_in(
        args.text, (lambda line: line.partition(" ")[2]) if args.kaldi else str
    )
    if not overlap.read:
        raise NoSentence(args.text[0], 0)
    print_overlap(overlap)
    if args.leave_out_overlap:
        write_others(args.text, args.out, overlap)
        marked = [(path, line) for path, lines in overlap.lines.items() for line in sorted(lines)]
        say_lines(f"{path}:{line}: left out" for path, line in marked[:SHOWN])
        print(f"{args.out}: {overlap.read - overlap.marked:,} lines, {overlap.marked:,} left out")


def print_overlap(overlap: Overlap) -> None:
    """Print what texts share with each set, as a table in Markdown, and the lines that do."""
    whole, first, second = (f"{length} {overlap.unit}" for length in overlap.lengths)
    print(f"| set | sentences | share {first} | {second} | of {whole} and more | whole |")
    print("|---|---:|---:|---:|---:|---:|")
    for path, found in overlap.sets.items():
        runs = " | ".join(f"{len(sentences)}" for sentences in found.runs.values())
        print(f"| {path} | {found.sentences} | {runs} | {found.long} | {len(found.whole)} |")
    where = f"{next(iter(overlap.lines))}{' ..' * (len(overlap.lines) > 1)}"
    print(f"{where}: {overlap.marked:,} of {overlap.read:,} lines share {first} or a sentence")


def read_sentences(path: str) -> list[str]:
    """Return the references of lists and other formats; of a text, its lines without ids: first
    words that all differ and have digits.
    """
    if detect(path, KALDI) != KALDI:
        refs = references([load(path)]).values()
        return [text for ref in refs for text in ([ref] if isinstance(ref, str) else ref)]
    rows = [line.partition(" ") for _, line in read_text(path) if line.strip()]
    ids = {first for first, _, _ in rows}
    named = len(ids) == len(rows) and all(map(re.compile(r"\d").search, ids))
    return [rest if named else "".join((first, blank, rest)) for first, blank, rest in rows]


def write_part(args: argparse.Namespace, subword, out: str, facts: dict) -> None:
    """Write a part of the corpus, which may hold no sentence; shards to their place."""
    facts |= {"text": args.text, "source": args.source or [], "kaldi": args.kaldi}
    facts |= {"subword": args.subword, "empty": 0}
    try:
        if args.source:
            more = args.kaldi, args.nj
            binarise_pairs(args.text, args.source, subword, out, *more, shard=args.shard)
        elif args.shard_size:
            more = args.shard_size, args.kaldi, args.nj
            facts["shards"] = write_shards(args.text, subword, args.out, *more, shard=args.shard)
        else:
            binarise(args.text, subword, out, args.kaldi, nj=args.nj, shard=args.shard)
    except NoSentence as error:
        facts["empty"] = error.empty


def join(parts: Sequence[Part], out: str, **options) -> None:
    """Write the corpus, or the index of its shards, of all parts; say what went in."""
    several = [part.facts["facts"] for part in parts]
    facts = several[0]
    sources = [*facts["text"], *facts["source"]]
    if "shards" in facts:
        write_index([shard for each in several for shard in each["shards"]], out, sources)
    else:
        files = [part.output for part in parts if part.output.is_file()]
        join_corpora(files, out, sources, sum(each["empty"] for each in several))
    names = ("text", "source", "kaldi", "subword")
    describe(Corpus.open(out), out, *(facts[name] for name in names))


def describe(corpus: Corpus, out: str, text, source, kaldi: bool, subword: str) -> None:
    """Say what went in, and what the subword model does not know."""
    header, texts, model = corpus.header, [*text, *source], corpus.subword
    unknown = 100 * header.unknown / header.tokens
    lines = (" ".join(line.split()[1:]) if kaldi else line for line in read_again(texts))
    for path in texts:
        say_lines(doubt_pieces(path, read_again([path]), f"utils/unify.py pieces < {path} > NEW"))
    warn_unknown(
        text[0],
        header.unknown,
        header.tokens,
        subword,
        texts=map(model.normaliser, lines),
        known=model.knows,
    )
    what = "pairs" if header.pairs else "sentences"
    shards = "" if corpus.shards[0].path == corpus.path else f"{len(corpus.shards)} shards, "
    print(
        f"{out}: {shards}{header.sentences} {what}, {header.tokens} tokens ({unknown:.2f}%"
        f" unknown), longest {header.longest}, {header.empty} empty lines skipped"
    )
