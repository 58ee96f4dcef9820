"""Logs of fairseq-generate and fairseq-interactive: lines `S-3 TAB source`, `T-3 TAB reference`,
`H-3 TAB score TAB hypothesis`, `D-3 TAB score TAB detokenised`, `P-3 TAB token scores`, ids in any
order (by length as a rule), other lines between them. Several H of an id are its N-best list.

Scores have base 2, and H is divided by length ** lenpen, the end of sentence counted, unless the
search was --unnormalized. What is read as `am` is the natural-log probability of the whole
sentence: H times its length, or where that contradicts the sum of the P line (which has four
decimals, but depends on no option of the search) that sum. Without a P line the length is that of
H, which is too short if fairseq has removed subword marks in it. The text is D, or else H, with
subword marks joined; T is `ref`, joined likewise. The format is read, not written.
"""

import re
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats import checks
from lmtools.formats.checks import BASE2, identifier, number, parse_in_unit, refuse_write
from lmtools.types import Hypothesis, NBest

SUMMARY = "fairseq-generate's log: S, T, H, D and P lines"
LINE = re.compile(r"([STHDPAI])-([^\s\t]+)\t(.*)", re.DOTALL)
TABLESS = re.compile(r"[STHDP]-[0-9]+(?!\S)")
ROUNDED = 0.5e-4  # what a token's score on a P line may be off
OPTIONS = {
    "lenpen": (
        "the search's --lenpen, the power of the length that scores were divided by (default 1)"
    ),
    "normalised": "yes (the default), or no if the search was --unnormalized",
    "bpe": (
        "subword marks to join: subword_nmt (`@@ `), sentencepiece (`▁`) or none (default: those"
        " that the H lines show)"
    ),
}
Lines = dict[str, list[tuple[str, str]]]  # the (`path:line`, content) of one id, by kind

write = refuse_write


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line is one of a sentence, or of fairseq's own log."""
    return bool(re.match(r"[STHDP]-\S+\t", first)) or "| INFO | fairseq" in first


def read(path, lenpen: str = "1", normalised: str = "yes", bpe: str | None = None) -> list[NBest]:
    """Read the lists in the log `path` by number, since fairseq writes by length; ids that are no
    numbers stay in their order.
    """
    if normalised not in ("yes", "no"):
        raise UserError(f"normalised={normalised}: neither yes nor no; give one of them")
    power = number(lenpen, "lenpen", "the power of the length") if normalised == "yes" else 0.0
    ids = group_lines(path)
    heads = (head.split("\t")[-1] for lines in ids.values() for _, head in lines.get("H", ()))
    marks = checks.check_marks(bpe, "bpe") if bpe else checks.guess_marks(heads)
    utts = sorted(ids, key=int) if all(map(str.isdecimal, ids)) else ids
    return [parse_list(utt, ids[utt], power, marks) for utt in utts]


def group_lines(path) -> dict[str, Lines]:
    """Return the lines of every id; others are skipped."""
    ids: dict[str, Lines] = {}
    for line, text in read_lines(path):
        where = f"{path}:{line}"
        if match := LINE.fullmatch(text):
            utt = identifier(match[2], where)
            ids.setdefault(utt, {}).setdefault(match[1], []).append((where, match[3]))
        elif TABLESS.match(text):
            raise UserError(
                f"{where}: no tab after {text[:20].split()[0]!a}; copy the log without"
                " changing its tabs"
            )
    return ids


def parse_list(utt: str, lines: Lines, power: float, marks: str) -> NBest:
    heads = lines.get("H", [])
    for kind in "ST":
        if len(lines.get(kind, ())) > 1:
            raise UserError(
                f"{lines[kind][1][0]}: a second line {kind}-{utt}; give each log by itself"
            )
    for kind in "DPAI":
        if kind in lines and len(lines[kind]) != len(heads):
            count = f"{len(lines[kind])} lines {kind}-{utt} for {len(heads)} of H-{utt}"
            raise UserError(
                f"{lines[kind][-1][0]}: {count}; keep all lines of an id, or drop all of a kind"
            )
    hyps = tuple(parse_hypothesis(rank, lines, power, marks) for rank in range(len(heads)))
    source, target = (lines[kind][0][1] if kind in lines else None for kind in "ST")
    ref = None if target is None else checks.join_pieces(target, marks)
    return NBest(utt, hyps, ref, {"S": source} if source else {})


def parse_hypothesis(rank: int, lines: Lines, power: float, marks: str) -> Hypothesis:
    """Return hypothesis `rank` of an id, from its lines of every kind."""
    where, head = lines["H"][rank]
    value, text = split_score(head, where)
    shown = text
    if "D" in lines:
        place, line = lines["D"][rank]
        shown = split_score(line, place)[1]
    words = checks.join_pieces(shown, marks)
    extra = {kind: lines[kind][rank][1] for kind in "PAI" if kind in lines}
    place, line = lines["P"][rank] if "P" in lines else ("", "")
    parts = [number(part, place, "a token's score") for part in line.split()]
    am = parse_in_unit(
        value, find_unit(len(parts) or len(text.split()) + 1, power, where), where, "the score"
    )
    if parts and abs(am / BASE2 - sum(parts)) > ROUNDED * len(parts) + 1e-6 * abs(sum(parts)):
        am = parse_in_unit(repr(sum(parts)), BASE2, where, "the sum of the token scores")
    return Hypothesis(words, {"am": am}, extra)


def split_score(content: str, where: str) -> tuple[str, str]:
    score, tab, text = content.partition("\t")
    if not tab:
        raise UserError(f"{where}: no tab after the score; expected `H-id TAB score TAB text`")
    number(score, where, "the score")
    return score, text


def find_unit(length: int, power: float, where: str) -> float:
    """Return the factor from an H score, base 2 and a mean of `length` tokens, to a natural sum."""
    if abs(power) > 20:
        raise UserError(
            f"{where}: no search divides by the length to the power of {power}; give the search's"
            " --lenpen"
        )
    return length**power * BASE2
