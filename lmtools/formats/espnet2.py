"""ESPnet2 decode directories: `[logdir/output.J/]{n}best_recog/{text,score}`, one directory a rank and one file a field.

`score` is the printed total of the first pass (decoder, CTC and LM parts already weighted and added), a number or `tensor(-7.41)`
with or without `device=`; it becomes the component `am`. A rank directory may lack utterances; a too-short utterance has the text
" " and becomes an empty hypothesis. `token` and `token_int` are the recogniser's own units and are neither read nor written.
"""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lmtools.errors import UserError
from lmtools.files import cannot
from lmtools.formats import kaldi_text
from lmtools.formats.checks import checked, number
from lmtools.types import Hypothesis, NBest

RANK = re.compile(r"([1-9][0-9]*)best_recog")
JOB = re.compile(r"output\.([0-9]+)")
TENSOR = re.compile(r"tensor\((.*?)(,.*)?\)")


def recognises(path: Path, first: str) -> bool:
    """Whether `path` is a directory with rank directories in it or in its jobs."""
    return path.is_dir() and any(True for _ in parts(path))


def read(path) -> list[NBest]:
    """The N-best lists in decode directory `path` (or its logdir, or one output.J), utterances in the order of the jobs' best lists."""
    lists: dict[str, dict[int, Hypothesis]] = {}
    scored = None
    for folder, rank in parts(Path(path)):
        if scored not in (None, (folder / "score").exists()):
            raise UserError(f"{folder}: some rank directories have a file `score` and some do not; decode again or remove them all")
        scored = (folder / "score").exists()
        for utt, hyp in hypotheses(folder, scored):
            if rank in lists.setdefault(utt, {}):
                raise UserError(f"{folder}/text: utterance {utt!r} occurs in two jobs; keep one of them")
            lists[utt][rank] = hyp
    if scored is None:
        raise UserError(f"{path}: no directory like 1best_recog in it or in its output.J; give an ESPnet2 decode directory")
    return [NBest(utt, tuple(hyp for _, hyp in sorted(ranks.items()))) for utt, ranks in lists.items()]


def parts(path: Path) -> Iterator[tuple[Path, int]]:
    """Pairs (rank directory, rank): those in `path` itself, or else those of all its jobs, job by job in numeric order."""
    if ranks := numbered(path, RANK):
        yield from ranks
        return
    for job, _ in numbered(path, JOB) or numbered(path / "logdir", JOB):
        yield from numbered(job, RANK)


def numbered(path: Path, name: re.Pattern) -> list[tuple[Path, int]]:
    """The subdirectories of `path` whose whole name matches, with their numbers, in numeric order."""
    try:
        inside = [(child, match) for child in path.iterdir() if (match := name.fullmatch(child.name)) and child.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise cannot("read", path, error) from None
    return sorted(((child, int(match[1])) for child, match in inside), key=lambda pair: pair[1])


def hypotheses(folder: Path, scored: bool) -> Iterator[tuple[str, Hypothesis]]:
    """Pairs (utterance, hypothesis) of one rank directory, text and score joined by id."""
    texts = kaldi_text.read(folder / "text")
    scores = {}
    if scored:
        scores = {utt: score(text, f"{folder}/score:{line}") for line, utt, text in kaldi_text.rows(folder / "score")}
        for utt in texts.keys() ^ scores.keys():
            raise UserError(f"{folder}: utterance {utt!r} is only in one of `text` and `score`; decode it again or drop it from both")
    for utt, text in texts.items():
        yield utt, Hypothesis(text, {"am": scores[utt]} if scored else {})


def score(text: str, where: str) -> float:
    """The number in `text`, bare or as `tensor(...)`."""
    match = TENSOR.fullmatch(text)
    return number(match[1].strip() if match else text, where, "score")


def write(nbests: Iterable[NBest], path) -> None:
    """Write a decode directory with one rank directory a rank; the whole appears at once, in place of an earlier one.

    UserError if the lists have other scores than `am`, or if `path` holds anything but rank directories.
    """
    nbests = list(checked(nbests, path))
    with replaced(Path(path)) as temporary:
        for rank in range(1, max((len(nbest.hyps) for nbest in nbests), default=0) + 1):
            write_rank([nbest for nbest in nbests if len(nbest.hyps) >= rank], rank, temporary / f"{rank}best_recog", path)


def write_rank(nbests: Sequence[NBest], rank: int, folder: Path, path) -> None:
    """The files of one rank directory; `path` is what messages name."""
    hyps = {nbest.utt: nbest.hyps[rank - 1] for nbest in nbests}
    for utt, hyp in hyps.items():
        if hyp.scores.keys() - {"am"}:
            names = ", ".join(sorted(hyp.scores))
            raise UserError(f"{path}: utterance {utt!r} has the scores {names}; espnet2 holds only `am`: keep these lists as jsonl")
    kaldi_text.write({utt: hyp.text for utt, hyp in hyps.items()}, folder / "text")
    if any(hyp.scores for hyp in hyps.values()):
        kaldi_text.write({utt: f"tensor({float(hyp.scores['am'])!r})" for utt, hyp in hyps.items()}, folder / "score")


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A temporary directory beside `path` that takes its place when the block ends well."""
    if path.exists() and (not path.is_dir() or any(not RANK.fullmatch(child.name) for child in path.iterdir())):
        raise UserError(f"{path}: holds other files than rank directories; choose another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as home:
            new = Path(home, "new")
            new.mkdir()
            yield new
            if path.exists():
                os.replace(path, Path(home, "old"))
            os.replace(new, path)
    except OSError as error:
        raise cannot("write", path, error) from None
