"""SRILM's N-best lists: one file an utterance, its id by name, or a directory of them.

- headerless (version 0): `-311.2 -14.9 2 blue finch`, base-10 logarithms of acoustic and language
model, number of words, words: `am` and
  `lm`.
- `NBestList1.0` (version 1): `(-71234) blue finch`, one total in bytelogs: `am`.
- `NBestList2.0` (version 2): `(-71234) blue ( st: 0.1 et: 0.4 g: -120 a: -900 ) ...`. `am` and `lm`
are the words' sums of a: and g:.
  Phones and states are the tokens whose times lie within the preceding word's.

Lists are written without a header. The pause `-pau-` is no word for SRILM, which leaves it out of
its counts, language models and errors; so it is left out of the text. Noises ([laughter] and the
like) differ from recogniser to recogniser: they stay.

A bytelog is a logarithm to base 1.0001, divided by 1024 and rounded (SRILM's manual page
nbest-format): 1024/10000.5 of a natural one.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from lmtools.base.atomic import atomic_directory, atomic_text, is_stream
from lmtools.base.errors import UserError
from lmtools.base.files import OPENERS, read_lines
from lmtools.formats.checks import (
    BASE10,
    BYTELOG,
    NUMBER,
    check_nbests,
    file_name,
    identifier,
    list_names,
    number,
    parse_in_unit,
    spell_in_unit,
)
from lmtools.formats.registry import list_children, read_first_line
from lmtools.types import TOTAL, Hypothesis, NBest

SUMMARY = "SRILM: a file an utterance or a directory of them, headerless, NBestList1.0 or 2.0"
HEADERS = {"NBestList1.0": "1", "NBestList2.0": "2"}
SCORED = ".score"  # as SRILM's rescoring calls its lists: UTT.score.gz
PAUSE = "-pau-"
NOISE = re.compile(r"-\S+-|\[\S*\]|<\S*>|\(\S*\)|\{\S*\}|\+\+\S*\+\+|[@%#]\S*")
TOKEN = 11  # fields of a word in version 2: word ( st: # et: # g: # a: # )
MARKS = {1: "(", 2: "st:", 4: "et:", 6: "g:", 8: "a:", 10: ")"}


def recognises(path: Path, first: str) -> bool:
    """Return whether a header, or two scores and the right number of words, comes first."""
    if path.is_dir():
        files = list_files(path)
        first = read_first_line(files[0]) if files else ""
    parts = first.split()
    headerless = (
        len(parts) > 2
        and all(map(NUMBER.fullmatch, parts[:2]))
        and guess_count(parts[2], parts[3:], parts)
    )
    return headerless or first.strip() in HEADERS


def guess_count(count: str, words: list[str], line: list[str]) -> bool:
    """Return whether SRILM may have written `count` before `words`, or without pauses; or 0."""
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", count):
        return False
    least = sum(not NOISE.fullmatch(word) for word in words)
    return least <= int(count) <= len(words) or (
        line[0].startswith("-") and line[1:3] == ["0", "0"]
    )


def list_files(path: Path) -> list[Path]:
    """Return the files in a directory by name, hidden ones left out."""
    return [
        child for child in list_children(path) if child.is_file() and not child.name.startswith(".")
    ]


def name_files(path: Path) -> dict[str, Path]:
    """Return the files in a directory by utterance; UserError for two of one."""
    files: dict[str, Path] = {}
    for file in list_files(path):
        utt = utterance_of(file)
        if utt in files:
            raise UserError(
                f"{file}: utterance {utt!r} is also in {files[utt].name}; remove one of them"
            )
        files[utt] = file
    return files


def read(path) -> Iterator[NBest]:
    """Read the list in the file `path`, or those in the files of the directory, sorted by name."""
    if not Path(path).is_dir():
        yield read_list(path)
        return
    files = name_files(Path(path))
    if not files:
        raise UserError(
            f"{path}: no files in the directory; give one with an N-best list an utterance"
        )
    yield from map(read_list, files.values())


def read_list(path) -> NBest:
    lines = ((count, line.strip()) for count, line in read_lines(path) if line.strip())
    version, hyps = "0", []
    for count, line in lines:
        where = f"{path}:{count}"
        if line in HEADERS:
            if hyps or version != "0":
                raise UserError(
                    f"{where}: a second header; give each utterance's list its own file"
                )
            version = HEADERS[line]
        elif version == "2":
            hyps.append(parse_detailed(line, where))
        elif version == "1" or line.startswith("("):
            version = "1"
            score, words = split_total(line, where)
            am = parse_in_unit(score, BYTELOG, where, "the score")
            hyps.append(Hypothesis(drop_pauses(words), {"am": am}))
        else:
            hyps.append(parse_headerless(line, where))
        if hyps and hyps[0].scores.keys() != hyps[-1].scores.keys():
            raise UserError(
                f"{where}: a line without `(score)` after lines that have it, or the other way"
                " round; keep one format"
            )
    return NBest(identifier(utterance_of(Path(path)), str(path)), tuple(hyps))


def file_of(utt: str, path) -> str:
    """Return the name of an utterance's file in the directory `path`."""
    return file_name(utt, str(path)) + (SCORED if utt.endswith(SCORED) else "") + ".gz"


def utterance_of(file: Path) -> str:
    name = file.name.removesuffix(file.suffix) if file.suffix in OPENERS else file.name
    return name.removesuffix(SCORED) or name


def parse_headerless(line: str, where: str) -> Hypothesis:
    """Return a line of base-10 scores and the number of words."""
    parts = line.split()
    if len(parts) < 3:
        raise UserError(
            f"{where}: {len(parts)} fields; expected `acoustic-score lm-score number-of-words w1 w2"
            " ...`"
        )
    scores = {
        name: parse_in_unit(part, BASE10, where, f"the {name} score")
        for name, part in zip(("am", "lm"), parts, strict=False)
    }
    if not re.fullmatch(r"[0-9]{1,9}", parts[2]):
        raise UserError(
            f"{where}: number of words is {parts[2]!r}; expected a whole number, then the words"
        )
    return Hypothesis(drop_pauses(parts[3:]), scores)


def drop_pauses(words: Iterable[str]) -> str:
    """Return the text of `words` without pauses."""
    return " ".join(word for word in words if word != PAUSE)


def split_total(line: str, where: str) -> tuple[str, list[str]]:
    score, *rest = line.split()
    if not (score.startswith("(") and score.endswith(")")):
        raise UserError(f"{where}: starts with {score!r}; expected `(score) w1 w2 ...`")
    return score[1:-1], rest


def parse_detailed(line: str, where: str) -> Hypothesis:
    score, rest = split_total(line, where)
    parse_in_unit(score, BYTELOG, where, "the score")
    if len(rest) % TOKEN or any(
        rest[start + place] != mark
        for start in range(0, len(rest), TOKEN)
        for place, mark in MARKS.items()
    ):
        raise UserError(
            f"{where}: not `word ( st: # et: # g: # a: # )` throughout; give the header"
            " NBestList1.0 to lists without times"
        )
    tokens = find_words(
        [rest[start : start + TOKEN] for start in range(0, len(rest), TOKEN)], where
    )
    sums = {
        name: sum(number(token[place], where, what) for token in tokens)
        for name, place, what in (("am", 9, "an a: score"), ("lm", 7, "a g: score"))
    }
    scores = {
        name: parse_in_unit(repr(value), BYTELOG, where, f"the sum of the {name} scores")
        for name, value in sums.items()
    }
    spans = ((float(token[3]), float(token[5])) for token in tokens if token[0] != PAUSE)
    times = "\n".join(f"1 {start:.2f} {max(end - start, 0):.2f}" for start, end in spans)
    extra = {"times": times} if times else {}
    return Hypothesis(drop_pauses(token[0] for token in tokens), scores, extra)


def find_words(tokens: list[list[str]], where: str) -> list[list[str]]:
    """Return the tokens that are words, not phones or states inside one."""
    kept, inner = [], (0.0, 0.0)
    for token in tokens:
        start, end = (number(token[place], where, f"time {MARKS[place - 1]}") for place in (3, 5))
        if not (inner[0] <= start and end <= inner[1] and inner[0] < inner[1]):
            kept.append(token)
            inner = (start, end)
    return kept


def write(nbests: Iterable[NBest], path) -> None:
    """Write one list to a file of its name or `-`, else UTT.gz of each into a directory."""
    nbests = check_nbests(nbests, path)
    first = next(nbests, None)
    second = next(nbests, None)
    if first and not second and (is_stream(path) or utterance_of(Path(path)) == first.utt):
        write_one(first, path, path)
        return
    if is_stream(path):
        raise UserError(
            f"{path}: SRILM keeps one list a file, and there is not exactly one; give the name of a"
            " directory"
        )
    with atomic_directory(path, file_of(first.utt, path) if first else "") as temporary:
        for nbest in (nbest for part in ((first, second), nbests) for nbest in part if nbest):
            write_one(nbest, temporary / file_of(nbest.utt, path), path)


def write_one(nbest: NBest, file, path) -> None:
    """Write a list to `file`; `path` is what messages name."""
    with atomic_text(file) as out:
        for hyp in nbest.hyps:
            pair, words = two_scores(hyp, f"{path}: utterance {nbest.utt!r}"), hyp.text.split()
            scores = [spell_in_unit(value, BASE10) for value in pair]
            out.write(" ".join([*scores, str(len(words)), *words]) + "\n")


def two_scores(hyp: Hypothesis, where: str) -> tuple[float, float]:
    """Return the scores `am` and `lm`, or the total and 0; UserError for others without a total."""
    if TOTAL in hyp.scores:
        return hyp.scores[TOTAL], 0.0
    if others := hyp.scores.keys() - {"am", "lm"}:
        names = list_names(others)
        raise UserError(
            f"{where}: has the scores {names}, and SRILM's hold am and lm; `lmtools rescore` first,"
            " or keep the lists as jsonl"
        )
    return hyp.scores.get("am", 0.0), hyp.scores.get("lm", 0.0)
