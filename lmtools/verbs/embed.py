"""lmtools embed: contextual vectors of the words of a text."""

import sys

from tqdm import tqdm

from lmtools.embed import WordVectors, writing
from lmtools.embed.stores import checked
from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.formats import kaldi_text
from lmtools.verbs.subword import positive


def arguments(parser):
    parser.epilog = (
        "Each word between the spaces of a line, normalised as in training, has a vector a layer: the state of the left-to-right LSTM, "
        "then that of the right-to-left one. F.npz: vectors (words of all lines, layers, values), offsets (where each line's words begin, "
        "and the end), words, layers. F.h5: a dataset a line, named 0, 1 ..., of (layers, words, values), and sentence_to_index, as ELMo's "
        "own tools write it. Empty lines have no words but keep their number."
    )
    parser.add_argument("--lm", required=True, metavar="DIR", help="directory of a two-way model")
    parser.add_argument("--text", required=True, metavar="F", help="one sentence a line; - is standard input")
    parser.add_argument("--kaldi", action="store_true", help="the text is in Kaldi's format: drop the utterance id")
    parser.add_argument("--out", required=True, metavar="F.npz|F.h5", help="the vectors, float32")
    parser.add_argument("--layers", type=layers, metavar="0,1,2", help="0 is a word's own vector, twice (default: all)")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1 ... (default: %(default)s)")
    parser.add_argument("--precision", default="float32", help="of matrix products: float32, bfloat16, auto (default: %(default)s)")
    parser.add_argument("--batch-rows", type=positive, default=4096, metavar="N", help="words a batch (default: %(default)s)")


def layers(text: str) -> tuple[int, ...] | None:
    """The numbers in `0,1,2`; None for `all`."""
    return None if text == "all" else tuple(map(int, text.split(",")))


def run(args):
    """Embed line by line; say on standard error how many words there were."""
    checked(args.out)
    embed = WordVectors(args.lm, args.layers, args.device, args.precision, args.batch_rows)
    texts = (row[-1] for row in (kaldi_text.rows if args.kaldi else read_lines)(args.text))
    lines = words = 0
    with writing(args.out, embed.layers, embed.width) as add:
        for line in tqdm(embed(texts), desc=f"embed {args.lm}", unit="line", disable=None, dynamic_ncols=True):
            add(line)
            lines, words = lines + 1, words + len(line.words)
        if not lines:
            raise UserError(f"{args.text}:1: no lines; give text")
    which = ", ".join(map(str, embed.layers))
    print(f"{args.out}: {words:,} words of {lines:,} lines, {embed.width:,} values in each of the layers {which}", file=sys.stderr)
