"""Kaldi's N-best archives:
`archives.JOB/{words_text,words,lmwt.nolm,lmwt.lmonly,lmwt.withlm,acwt,ali}`, one entry a hypothesis
`utt-n`.

Archives hold costs, which become scores by changing the sign: `am` = -acwt, `graph` = -lmwt.nolm
(the graph without the LM), `lm` = -lmwt.lmonly, or nolm - withlm where lmonly is missing (-withlm,
graph included, where nolm is missing too). `ac_cost`, `graph_cost` and `lm_cost`, as others call
what nbest-to-linear writes, are acwt, lmwt.nolm and lmwt.lmonly. Any other file `lmwt.NAME` is the
component NAME, as the scripts for neural LMs leave it; components besides am, graph and lm, a
rescored list's total among them, are written in this way. Hypotheses are joined by key, not by
line. Numbers n may have gaps; lists come in their order and, unless it changes, keep them. Files
may be text or binary, NAME, NAME.gz, NAME.ark or NAME.scp; `ali` and the word ids are kept as
extras. Text comes from words_text, or from words and a words.txt.

A single archive of texts (`ark:-`, `ark,t:FILE`, a file called words_text) is lists without scores,
read and written one by one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import groupby, pairwise
from pathlib import Path

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.formats import kaldi_tables
from lmtools.formats.checks import Utterances, check_nbests, name_unread, no_score
from lmtools.formats.registry import list_children, list_numbered, parse_specifier, read_first_line
from lmtools.types import Hypothesis, NBest

SUMMARY = "Kaldi's archives of N-best rescoring, a directory, or one archive of texts such as ark:-"
OPTIONS = {"words": "words.txt with the words' ids, in place of words_text"}
JOB = re.compile(r"archives\.([0-9]+)")
FILE = re.compile(r"(.*?)(\.ark)?(\.gz|\.xz|\.bz2|\.scp)?", re.DOTALL)
COSTS = {"acwt": "am", "lmwt.nolm": "graph", "lmwt.lmonly": "lm"}
# other names of these files, `-` for `_` or an `s` at the end apart
SPELLINGS = {
    "ac_cost": "acwt",
    "acoustic_cost": "acwt",
    "graph_cost": "lmwt.nolm",
    "lm_cost": "lmwt.lmonly",
}
ROW = re.compile(r"\S+-[0-9]{1,9}\s+[-+]?[0-9]*\.[0-9]*(e[-+]?[0-9]+)?\s*", re.IGNORECASE)
EXTRAS = ("words", "ali")
NUMBER = re.compile("[0-9]{1,9}", re.ASCII)


def recognises(path: Path, first: str) -> bool:
    """Return whether `path` is such a directory, or a file called words_text."""
    if path.is_dir():
        return any(
            "words_text" in inside or ("words" in inside and inside.keys() & COSTS.keys())
            for inside in map(list_archives, list_folders(path))
        )
    return is_list(path)


def is_list(path) -> bool:
    """Return whether `path` names one archive of texts."""
    return (
        path == "-"
        or parse_specifier(path) is not None
        or FILE.fullmatch(Path(path).name)[1] == "words_text"
    )


def list_folders(path: Path) -> list[Path]:
    """Return the directories of the jobs in numeric order, or `path` itself if it has none."""
    return [child for _, child in list_numbered(path, JOB) if child.is_dir()] or [path]


def list_archives(folder: Path) -> dict[str, Path]:
    """Return archives by names without endings, SPELLINGS by Kaldi's; plain files first."""
    files = [child for child in list_children(folder) if child.is_file()]
    files.sort(key=lambda child: (child.suffix in (".scp", ".ark"), child), reverse=True)
    named = {FILE.fullmatch(child.name)[1]: child for child in files}
    names = {name: SPELLINGS.get(name.replace("-", "_").removesuffix("s"), name) for name in named}
    return {name if names[name] in named else names[name]: file for name, file in named.items()}


def read(path, words: str | None = None) -> Iterator[NBest]:
    """Read the N-best lists of a directory of archives, job by job, or of one archive of texts.

    UserError where a key is missing from a file, occurs twice, or does not end in its number.
    """
    utterances = Utterances()
    for utt, hyps, where in texts_of(path) if is_list(path) else read_directory(Path(path), words):
        yield NBest(utterances.add(utt, where), tuple(hyps))


def texts_of(path) -> Iterator[tuple[str, list[Hypothesis], str]]:
    """Yield (utterance, hypotheses, where) of an archive of texts."""
    rows = (
        (*split_key(key, where), Hypothesis(text), where)
        for key, text, where in kaldi_tables.read_values(path, "tokens")
    )
    for utt, group in groupby(rows, key=lambda row: row[0]):
        items = list(group)
        where = items[0][3]
        hyps = sort_by_number(((n, hyp) for _, n, hyp, _ in items), f"{where}: utterance {utt!r}")
        yield utt, hyps, where


def split_key(key: str, where: str) -> tuple[str, int]:
    """Return (utterance, n) of `utt-n`."""
    utt, _, n = key.rpartition("-")
    if not utt or not NUMBER.fullmatch(n):
        raise UserError(
            f"{where}: key {key!r} does not end in -n, the number of the hypothesis; write `utt-1`,"
            " `utt-2` ..."
        )
    return utt, int(n)


def sort_by_number(numbered: Iterable[tuple[int, Hypothesis]], where: str) -> list[Hypothesis]:
    hyps = sorted(numbered, key=lambda pair: pair[0])
    if twice := [n for (n, _), (after, _) in pairwise(hyps) if n == after]:
        raise UserError(f"{where}: number {twice[0]} occurs twice; keep one of them")
    return [
        hyp if n == rank else Hypothesis(hyp.text, hyp.scores, {**hyp.extra, "n": str(n)})
        for rank, (n, hyp) in enumerate(hyps, 1)
    ]  # fmt: skip


def read_directory(path: Path, words: str | None) -> Iterator[tuple[str, list[Hypothesis], str]]:
    """Yield (utterance, hypotheses, where) of a directory; name the scores that are not read."""
    folders = {folder: list_archives(folder) for folder in list_folders(path)}
    unread = {name for files in folders.values() for name in files if is_unread(name, files)}
    name_unread(path, unread, "costs in a file lmwt.NAME are read as the score NAME")
    for folder, files in folders.items():
        texts, source = hypothesis_texts(folder, files, words or find_words(path, folder))
        scores = read_components(folder, files)
        extras = {name: read_integers(files[name]) for name in EXTRAS if name in files}
        for name, column in scores.items():
            if different := texts.keys() ^ column.keys():
                key = min(different)
                which = "lacks" if key in texts else "has, but not the texts,"
                raise UserError(
                    f"{folder}: the file of {name!r} {which} the key {key!r}; write the archives"
                    " again"
                )
        lists: dict[str, list[tuple[int, Hypothesis]]] = {}
        for key, text in texts.items():
            utt, n = split_key(key, source)
            extra = {name: column[key] for name, column in extras.items() if key in column}
            lists.setdefault(utt, []).append(
                (n, Hypothesis(text, {name: column[key] for name, column in scores.items()}, extra))
            )
        for utt, numbered in lists.items():
            yield utt, sort_by_number(numbered, f"{source}: utterance {utt!r}"), source


def is_cost(name: str) -> bool:
    return name == "acwt" or name.startswith("lmwt.")


def is_unread(name: str, files: Mapping[str, Path]) -> bool:
    """Return whether an archive of a directory begins as scores do and is not read."""
    if is_cost(name) or name in ("words_text", *EXTRAS):
        return False
    with suppress(UserError):  # of a damaged archive that nobody asked for
        return bool(ROW.fullmatch(read_first_line(files[name])))
    return False


def find_words(path: Path, folder: Path) -> Path | None:
    return next((file for place in (folder, path) if (file := place / "words.txt").is_file()), None)


def hypothesis_texts(folder: Path, files: Mapping[str, Path], words) -> tuple[dict[str, str], str]:
    """Return (text by key, the file's name), from words_text or else from the ids of words."""
    if "words_text" in files:
        return column_of(files["words_text"], "tokens"), str(files["words_text"])
    if "words" not in files:
        raise UserError(
            f"{folder}: no words_text and no words in it; give a directory of Kaldi's N-best"
            " archives"
        )
    if words is None:
        raise UserError(
            f"{files['words']}: holds ids; name the table of their words, --format"
            " kaldi-nbest:words=words.txt"
        )
    names, where = kaldi_tables.read_symbols(words), str(files["words"])
    ids = column_of(files["words"], "ints")
    for key, numbers in ids.items():
        if unknown := [number for number in numbers if number and number not in names]:
            raise UserError(
                f"{where}: key {key!r} has the word {unknown[0]}, which {words} lacks; give the"
                " words.txt of this decoding"
            )
    return {
        key: " ".join(names[number] for number in numbers if number) for key, numbers in ids.items()
    }, where


def column_of(path: Path, kind: str) -> dict[str, object]:
    """Read the value of each key; UserError for a key that occurs twice or has no number."""
    column: dict[str, object] = {}
    for key, value, where in kaldi_tables.read_values(path, kind):
        split_key(key, where)
        if key in column:
            raise UserError(f"{where}: key {key!r} occurs a second time; keep one of them")
        column[key] = value
    return column


def read_integers(path: Path) -> dict[str, str]:
    return {key: " ".join(map(str, value)) for key, value in column_of(path, "ints").items()}


def read_components(folder: Path, files: Mapping[str, Path]) -> dict[str, dict[str, float]]:
    costs = {
        name: column_of(file, "float")
        for name, file in files.items()
        if is_cost(name) and (name != "lmwt.withlm" or "lmwt.lmonly" not in files)
    }
    if (total := costs.pop("lmwt.withlm", None)) is not None:
        graph = costs.get("lmwt.nolm", dict.fromkeys(total, 0.0))
        if missing := total.keys() - graph.keys():
            raise UserError(
                f"{folder}: lmwt.nolm lacks the key {min(missing)!r} of lmwt.withlm; write the"
                " archives again"
            )
        costs["lmwt.lmonly"] = {key: value - graph[key] for key, value in total.items()}
    order = sorted(
        costs, key=lambda name: (list(COSTS).index(name) if name in COSTS else len(COSTS), name)
    )
    scores = ({key: -value for key, value in costs[name].items()} for name in order)
    names = (COSTS.get(name, name.removeprefix("lmwt.")) for name in order)
    return dict(zip(names, scores, strict=True))


def write(nbests: Iterable[NBest], path) -> None:
    """Write a directory of text archives, or (`ark:...`, `-`, words_text) one archive of texts,
    each list as it comes; empty lists vanish. UserError for scores that it cannot hold.
    """
    if is_list(path):
        with kaldi_tables.Writer(path) as out:
            for nbest in check_nbests(nbests, path):
                for key, hyp in key_hypotheses(nbest):
                    no_score(hyp, f"{path}: utterance {nbest.utt!r}")
                    out.write(key, " ".join(hyp.text.split()))
        return
    nbests = list(check_nbests(nbests, path))
    with atomic_directory(path, "words_text") as temporary, ExitStack() as stack:
        files: dict[str, kaldi_tables.Writer] = {}

        def out(name: str) -> kaldi_tables.Writer:
            return files.get(name) or files.setdefault(
                name, stack.enter_context(kaldi_tables.Writer(temporary / name))
            )

        out("words_text")
        for nbest in nbests:
            for key, hyp in key_hypotheses(nbest):
                write_hypothesis(key, hyp, out, where=f"{path}: key {key!r}")


def key_hypotheses(nbest: NBest) -> Iterator[tuple[str, Hypothesis]]:
    """Yield (`utt-n`, hypothesis): n as it was read if in order still, else the rank."""
    numbers = [
        int(n) if NUMBER.fullmatch(n := hyp.extra.get("n", str(rank))) else 0
        for rank, hyp in enumerate(nbest.hyps, 1)
    ]
    if any(a >= b for a, b in pairwise(numbers)):
        numbers = range(1, len(nbest.hyps) + 1)
    for n, hyp in zip(numbers, nbest.hyps, strict=True):
        yield f"{nbest.utt}-{n}", hyp


def write_hypothesis(
    key: str, hyp: Hypothesis, out: Callable[[str], kaldi_tables.Writer], where: str
) -> None:
    """Write one hypothesis into the files of its text, scores and extras."""
    out("words_text").write(key, " ".join(hyp.text.split()))
    for name, value in hyp.scores.items():
        out(cost_file(name, where)).write(key, repr(-float(value)))
    if {"graph", "lm"} <= hyp.scores.keys():
        out("lmwt.withlm").write(key, repr(-float(hyp.scores["graph"] + hyp.scores["lm"])))
    for name in EXTRAS:
        if (numbers := hyp.extra.get(name)) is not None:
            if not re.fullmatch(r"[-+0-9\s]*", numbers):
                raise UserError(f"{where}: extra {name!r} is {numbers[:40]!r}; expected integers")
            out(name).write(key, " ".join(numbers.split()))


def cost_file(name: str, where: str) -> str:
    """Return the name of the file that holds the component `name`."""
    files = {component: file for file, component in COSTS.items()}
    if name in files:
        return files[name]
    file = f"lmwt.{name}"
    if (
        file in (*COSTS, "lmwt.withlm")
        or FILE.fullmatch(file)[1] != file
        or re.search("[/\0]", name)
        or len(name) > 60
    ):
        raise UserError(
            f"{where}: a component {name[:60]!r} has no place in Kaldi's archives; rename it"
        )
    return file
