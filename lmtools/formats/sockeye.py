"""Sockeye's N-best lists, as `sockeye.translate --nbest-size N --output-type json` writes them: a
JSON object a line.

    {"sentence_id": 1, "translation": "a", "score": 0.3, "translations": ["a", "b"],
      "scores": [0.3, 0.5]}

Translations stand best first; where there is one, the list is left out. A score, or the first of a
list of them (the others are of target factors), becomes `am`. It is normalised by length and, by
Sockeye's version, a cost or a log-probability: if scores rise from better to worse translations
they are costs, whose sign is changed. What else an object holds is kept as extra. The format is
read, not written.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from lmtools.errors import UserError
from lmtools.formats import json_io, pieces
from lmtools.formats.checks import first_time, identifier, refuse_write
from lmtools.types import Hypothesis, NBest

ABOUT = "Sockeye's JSON lines: sentence_id, translations, scores"
OPTIONS = {"bpe": "subword marks to join, as of moses (default: none)"}
OWN = ("sentence_id", "translation", "score", "translations", "scores")
Row = tuple[str, Sequence[str], Sequence[float], Mapping]  # id, texts, scores, the object

recognises = json_io.recognise("{", r'"sentence_id"\s*:', r'"translations?"\s*:')
write = refuse_write


def read(path, bpe: str = "none") -> Iterator[NBest]:
    """Read the lists of a file, once all are read; UserError where scores are neither costs nor
    log-probabilities.
    """
    pieces.check_marks(bpe, "bpe")
    rows = list(read_rows(path))
    sign = find_sign([scores for _, _, scores, _ in rows], path)
    for utt, texts, scores, tree in rows:
        aligned = {
            name: value
            for name, value in tree.items()
            if name not in OWN and isinstance(value, list) and len(value) == len(texts)
        }
        hyps = []
        for rank, (text, score) in enumerate(zip(texts, scores, strict=True)):
            extra = json_io.extras({name: value[rank] for name, value in aligned.items()}, (), path)
            joined = pieces.join_pieces(text, bpe)
            if bpe != "none" and joined != text:
                extra["pieces"] = text
            hyps.append(Hypothesis(joined, {"am": sign * score}, extra))
        yield NBest(utt, tuple(hyps), None, json_io.extras(tree, (*OWN, *aligned), str(path)))


def read_rows(path) -> Iterator[Row]:
    """Read every line; UserError with its number for what is not as the format says."""
    seen: set[str] = set()
    for tree, where in json_io.read_objects(path):
        own = tree.get("sentence_id")
        is_number = isinstance(own, int) and not isinstance(own, bool)
        utt = str(own) if is_number else json_io.member(tree, "sentence_id", str, where)
        first_time(identifier(utt, where), seen, where)
        seen.add(utt)
        if "translations" in tree:
            texts = json_io.member(tree, "translations", list, where)
            scores = json_io.member(tree, "scores", list, where)
        else:
            texts, scores = [tree.get("translation")], [tree.get("score")]
        if len(texts) != len(scores):
            raise UserError(
                f"{where}: {len(scores)} scores for {len(texts)} translations; fix the line"
            )
        texts = [json_io.expect(text, str, where, "a translation") for text in texts]
        scores = [score[0] if isinstance(score, list) and score else score for score in scores]
        yield utt, texts, [json_io.expect(value, float, where, "a score") for value in scores], tree


def find_sign(lists: Sequence[Sequence[float]], path) -> int:
    """Return 1 for log-probabilities, -1 for costs: by their order in the lists, or else, where all
    are alike, by their own sign; UserError where neither tells.
    """
    steps = [after - before for scores in lists for before, after in pairwise(scores)]
    if not any(steps):
        steps = [score for scores in lists for score in scores]
    if all(step <= 0 for step in steps):
        return 1
    if all(step >= 0 for step in steps):
        return -1
    raise UserError(
        f"{path}: scores rise and fall from one translation of a list to the next, so that nothing"
        " tells whether they are costs; sort each list, the best first"
    )
