"""lmtools score: log-probabilities of every hypothesis of an N-best file."""

import contextlib
import sys

from lmtools.errors import UserError
from lmtools.formats import kaldi_tables, read, scores, stream
from lmtools.formats.registry import parse_specifier
from lmtools.score import ScoreOptions, score_nbest, score_texts
from lmtools.score.unknown import warn_scored
from lmtools.text.unknown import LOOKED_AT
from lmtools.verbs.options import COMPUTING, SCORING, scoring_options


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "Lists from a pipe (--nbest - or an rspecifier such as ark:-) are scored utterance by"
        " utterance, each written as soon as it is done. A wspecifier as --out (ark,t:-) takes"
        " costs, the negated log-probabilities, under Kaldi's keys utt-n."
    )
    parser.add("--nbest", help="N-best lists; - is standard input, in jsonl if not --format")
    parser.add("--format")
    parser.add(*SCORING)
    about = "utt#rank, log-probability, tokens, check; - is standard output"
    parser.add("--out", metavar="F.scores", help=about)
    parser.add(*COMPUTING, "--nj")


def run(args):
    """Score a file as a whole, or a pipe utterance by utterance; say on standard error what was
    scored.
    """
    piped = args.nbest == "-" or parse_specifier(args.nbest)
    hypotheses, utterances, tokens, unknown = (score_pipe if piped else score_file)(
        args, scoring_options(args)
    )
    share = f", {unknown:,} unknown ({unknown / max(1, tokens):.2%})" if unknown else ""
    cost = (
        f" at a penalty of {unknown * args.oov_penalty:,.1f} nats in all"
        if unknown and args.oov_penalty
        else ""
    )
    print(
        f"{args.out}: {hypotheses:,} hypotheses of {utterances:,} utterances, {tokens:,}"
        f" tokens{share}{cost}",
        file=sys.stderr,
    )


def score_file(args, options: ScoreOptions) -> tuple[int, int, int, int]:
    """Score all lists at once; hypotheses, utterances, tokens, unknown tokens."""
    nbests = read(args.nbest, args.format)
    if not nbests:
        raise no_lists(args)
    table, flat = score_nbest(nbests, options)
    with open_scores(args.out, table.signature) as add:
        for nbest in nbests:
            add(nbest, table.log_prob[nbest.utt], table.tokens[nbest.utt])
    texts = (hyp.text for nbest in nbests for hyp in nbest.hyps)
    warn_scored(
        args.nbest,
        texts,
        int(flat.unknown.sum()),
        int(flat.tokens.sum()) - len(flat.log_prob),
        options,
        lists=True,
    )
    return len(flat.log_prob), len(nbests), int(flat.tokens.sum()), int(flat.unknown.sum())


def score_pipe(args, options: ScoreOptions) -> tuple[int, int, int, int]:
    """Score list by list; hypotheses, utterances, tokens, unknown tokens."""
    form = args.format or ("jsonl" if args.nbest == "-" else "kaldi-nbest")
    scorer, sizes, texts = options.load(), [0, 0, 0, 0], []
    with (
        contextlib.closing(options.open_cache(scorer)) as cache,
        open_scores(args.out, scorer.signature) as add,
    ):
        for nbest in stream(args.nbest, form):
            flat = score_texts([hyp.text for hyp in nbest.hyps], scorer, options, cache)
            texts += [hyp.text for hyp in nbest.hyps][: LOOKED_AT - len(texts)]
            add(nbest, flat.log_prob, flat.tokens)
            more = len(nbest.hyps), 1, int(flat.tokens.sum()), int(flat.unknown.sum())
            sizes = [a + b for a, b in zip(sizes, more, strict=True)]
        if not sizes[1]:
            raise no_lists(args)
    warn_scored(args.nbest, texts, sizes[3], sizes[2] - sizes[0], options, lists=True)
    return tuple(sizes)


def no_lists(args) -> UserError:
    """The user's view of an input without lists."""
    return UserError(f"{args.nbest}: no utterances; give the recogniser's N-best lists")


@contextlib.contextmanager
def open_scores(path: str, signature):
    """A function that writes one list's log-probabilities and tokens: rows of a score file, or
    costs of a Kaldi table.
    """
    if not parse_specifier(path):
        with scores.writing(path, signature) as add:
            yield add
        return
    with kaldi_tables.Writer(path) as table:

        def add(nbest, log_prob, tokens):
            for rank, (hyp, value) in enumerate(zip(nbest.hyps, log_prob, strict=True), 1):
                table.write(
                    f"{nbest.utt}-{hyp.extra.get('n', rank)}",
                    kaldi_tables.pack_float(-float(value), table.text),
                )

        yield add
