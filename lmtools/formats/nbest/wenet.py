"""WeNet's N-best lists, as `decoder_main --output_nbest` prints them, best first.

    wav a1
    candidate -3.25 blue finch
    candidate -4.5 blue fins

The score is the decoder's total, a natural logarithm: the component `am`. An utterance without
candidates is an empty list. The format is read, not written.
"""

from collections.abc import Iterator
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats import checks
from lmtools.types import Hypothesis, NBest

SUMMARY = "WeNet's decoder_main --output_nbest: `wav UTT`, then lines `candidate SCORE TEXT`"

write = checks.refuse_write


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line is `wav UTT`."""
    words = first.split()
    return len(words) == 2 and words[0] == "wav"


def read(path) -> Iterator[NBest]:
    """Read lists, each once the next one starts; UserError with the line of all else."""
    utt, hyps, utterances = None, [], checks.Utterances()
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        kind, _, rest = line.strip().partition(" ")
        if not kind:
            continue
        if kind == "wav":
            if utt is not None:
                yield NBest(utt, tuple(hyps))
            utt, hyps = utterances.add(rest.strip(), where), []
        elif kind == "candidate" and utt is not None:
            score, _, text = rest.strip().partition(" ")
            value = checks.number(score, where, "the score")
            hyps.append(Hypothesis(" ".join(text.split()), {"am": value}))
        else:
            raise UserError(
                f"{where}: expected `wav UTT`, then `candidate SCORE TEXT`; give what"
                " decoder_main --output_nbest wrote to --result"
            )
    if utt is not None:
        yield NBest(utt, tuple(hyps))
