"""Alignment of two texts with NIST's markup as networks of words, of least cost, as NIST's sclite
computes it: 4 a substitution, 3 an insertion or deletion, 2 an optional word that is missing, 0.001
an `@` that is passed.

The markup is alternations `{ a / b c / @ }`, `@` being no word, and optional words `(uh)`. A
network is a list of words in topological order, the first being none; each knows the words that may
come before it, in the order in which sclite tries them. Of several alignments of least cost the one
is taken that sclite takes (`network_dp_align_texts` of sctk 2.4.10), so that all counts are equal.
Costs with a fraction are rounded to 32 bits as there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmtools.base.errors import UserError
from lmtools.evaluate.edits import Counts
from lmtools.evaluate.metrics import Rules

NULL = "@"
TOKEN = re.compile(r"[{}/]|[^\s{}]+")
INSIDE = re.compile(r"[{}/]|[^\s{}/]+")
MARKED = re.compile(r"[{}@*;\\()]|^-|-$|\s-|-\s")  # what a text without any of has no markup
LOWER = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
ESCAPED = re.compile(r"((?:[^;\\]|\\.)*)")
DEEPEST = 50  # alternations inside each other


@dataclass(frozen=True)
class NetworkWord:
    """A word as it is compared (`text`), in the way it was written, and what it is besides."""

    text: str
    written: str
    optional: bool = False
    fragment: bool = False

    @property
    def null(self) -> bool:
        return self.written == NULL


@dataclass
class Network:
    """Words with their predecessors, `parents`, and the words that may be last, `ends`."""

    words: list[NetworkWord] = field(default_factory=lambda: [NetworkWord("", "")])
    parents: list[list[int]] = field(default_factory=lambda: [[]])
    ends: list[int] = field(default_factory=lambda: [0])

    def append(self, word: NetworkWord, before: list[int]) -> int:
        """Add a word behind others; return its number."""
        self.words.append(word)
        self.parents.append(before)
        return len(self.words) - 1


def build_network(text: str, rules: Rules) -> Network:
    """Build the network of a text; UserError for braces that are no alternation."""
    network = Network()
    tokens = split_tokens(text)
    network.ends = add_sequence(network, tokens, [0], rules)
    return network


def split_tokens(text: str) -> Sequence:
    """Return the words of a text; an alternation is a list of such lists."""
    stack: list[list] = [[[]]]
    place = 0
    while match := (INSIDE if len(stack) > 1 else TOKEN).search(text, place):
        token, place = match[0], match.end()
        inside = len(stack) > 1
        if token == "{":
            if (match.start() and text[match.start() - 1] not in " \t\n{/") or len(stack) > DEEPEST:
                raise UserError(f"{text[:60]!r}: `{{` inside a word; write `{{ a / b }}` apart")
            stack.append([[]])
        elif token == "}" and inside:
            alternatives = [alternative for alternative in stack.pop() if alternative]
            stack[-1][-1].append(alternatives)
        elif token == "/" and inside:
            stack[-1].append([])
        elif token == "}":
            raise UserError(f"{text[:60]!r}: `}}` without `{{`; write alternations `{{ a / b }}`")
        else:
            stack[-1][-1].append(token)
    if len(stack) > 1:
        raise UserError(f"{text[:60]!r}: `{{` without `}}`; write alternations `{{ a / b }}`")
    return stack[0][0]


def add_sequence(network: Network, tokens: Sequence, before: list[int], rules: Rules) -> list[int]:
    """Add tokens behind the words `before`; return the words that may be the last of them."""
    for token in tokens:
        if isinstance(token, str):
            before = [network.append(parse_word(token, rules), before)]
        elif token:
            ends = [add_sequence(network, alternative, before, rules) for alternative in token]
            before = [end for part in ends for end in part]
    return before


def parse_word(written: str, rules: Rules) -> NetworkWord:
    """Return the word without star behind it and tags after `;`, in lower case (ASCII)."""
    if MARKED.search(written):
        written = ESCAPED.match(written)[1].replace("\\", "")
        written = written[:-1] if len(written) > 1 and written.endswith("*") else written
    lower = written.translate(LOWER)
    optional = rules.optional and lower[:1] == "(" and lower[-1:] == ")"
    text = lower[1:-1] if optional else lower
    last = text[-1:] if optional else lower[-1:]
    fragment = rules.fragments and "-" in (last, lower[:1])
    return NetworkWord(text, lower, optional, fragment)


def list_words(text: str) -> Iterator[str]:
    return (token for token in INSIDE.findall(text) if token not in "{}/")


PASSED, MISSING, ONE, BOTH_NULL, SUBSTITUTION = 0.001, 2.0, 3.0, 1.0, 4.0


@dataclass(frozen=True, slots=True)
class WordPairs:
    """A hypothesis beside a reference: (C, S, D or I, its word, the hypothesis' word)."""

    pairs: tuple[tuple[str, str, str], ...]

    @property
    def steps(self) -> str:
        """A letter a step: C correct, S substituted, D deleted, I inserted."""
        return "".join(step for step, _, _ in self.pairs)

    @property
    def counts(self) -> Counts:
        """The error counts; as long as the path through the reference that was taken."""
        steps = self.steps
        return Counts(*map(steps.count, "SDI"), len(steps) - steps.count("I"))


def align_texts(ref: str, hyp: str, rules: Rules) -> WordPairs:
    """Return the hypothesis aligned with the reference; UserError for wrong markup in either."""
    first, second = build_network(ref, rules), build_network(hyp, rules)
    return WordPairs(tuple(trace_back(first, second, fill_table(first, second))))


def passing_cost(word: NetworkWord) -> float:
    return PASSED if word.null else MISSING if word.optional else ONE


def are_equal(ref: NetworkWord, hyp: NetworkWord) -> bool:
    if ref.fragment or hyp.fragment:
        for part, whole in ((ref.text, hyp.text), (hyp.text, ref.text)):
            if len(part) > 1 and part[0] == "-":
                return whole.endswith(part[1:])
            if len(part) > 1 and part[-1] == "-":
                return whole.startswith(part[:-1])
    return ref.text == hyp.text


def matching_cost(ref: NetworkWord, hyp: NetworkWord) -> float:
    if ref.null and hyp.null:
        return BOTH_NULL
    return 0.0 if are_equal(ref, hyp) else SUBSTITUTION


def round_cost(cost: float) -> float:
    return cost if cost.is_integer() else float(np.float32(cost))


def fill_table(ref: Network, hyp: Network) -> list[list[float]]:
    """Return the least cost up to each pair of words, row by row of the reference."""
    costs = [0.0, *map(passing_cost, hyp.words[1:])]
    row = [0.0]
    for column in range(1, len(costs)):
        row.append(round_cost(min(row[p] for p in hyp.parents[column]) + costs[column]))
    table = [row]
    for number in range(1, len(ref.words)):
        above = [table[parent] for parent in ref.parents[number]]
        best = above[0] if len(above) == 1 else list(map(min, zip(*above, strict=True)))
        table.append(fill_row(ref.words[number], hyp, costs, best))
    return table


def fill_row(
    word: NetworkWord, hyp: Network, costs: Sequence[float], above: list[float]
) -> list[float]:
    """Return a row of the table for a word of the reference; `above`: the least of its parents."""
    deletion = passing_cost(word)
    row = [round_cost(above[0] + deletion)]
    for column in range(1, len(costs)):
        parents = hyp.parents[column]
        if len(parents) == 1:
            matched, inserted = above[parents[0]], row[parents[0]]
        else:
            matched, inserted = min(above[p] for p in parents), min(row[p] for p in parents)
        other = hyp.words[column]
        if word.text != other.text or word.null:
            matched += matching_cost(word, other)
        least = min(matched, above[column] + deletion, inserted + costs[column])
        row.append(least if least.is_integer() else float(np.float32(least)))
    return row


def trace_back(
    ref: Network, hyp: Network, table: list[list[float]]
) -> Sequence[tuple[str, str, str]]:
    """Return the steps of the alignment in the table that sclite takes, in order."""
    row, column = min(
        ((a, b) for a in ref.ends for b in hyp.ends), key=lambda place: table[place[0]][place[1]]
    )
    steps: list[tuple[str, str, str]] = []
    while row or column:
        before = step_back(ref, hyp, table, (row, column))
        steps += describe_step(ref.words[row], hyp.words[column], (row, column), before)
        row, column = before
    return steps[::-1]


def step_back(ref: Network, hyp: Network, table, place: tuple[int, int]) -> tuple[int, int]:
    """Return the place before: substitutions first, deletions only where they cost less."""
    row, column = place
    rows, columns = ref.parents[row], hyp.parents[column]
    if not row or not column:
        choices = [(a, column) for a in rows] if row else [(row, b) for b in columns]
        return min(choices, key=lambda before: table[before[0]][before[1]])
    word, other = ref.words[row], hyp.words[column]
    matched = min(((a, b) for a in rows for b in columns), key=lambda p: table[p[0]][p[1]])
    deleted = min(rows, key=lambda a: table[a][column])
    inserted = min(columns, key=lambda b: table[row][b])
    costs = (
        round_cost(table[matched[0]][matched[1]] + matching_cost(word, other)),
        round_cost(table[deleted][column] + passing_cost(word)),
        round_cost(table[row][inserted] + passing_cost(other)),
    )
    if costs[0] <= costs[1] and costs[0] <= costs[2]:
        return matched
    return (deleted, column) if costs[1] < costs[2] else (row, inserted)


def describe_step(
    ref: NetworkWord, hyp: NetworkWord, place, before
) -> Iterator[tuple[str, str, str]]:
    if place[0] == before[0]:
        if not hyp.null:
            yield "C" if hyp.optional else "I", "", hyp.written
    elif place[1] == before[1]:
        if not ref.null:
            yield "C" if ref.optional else "D", ref.written, ""
    elif not (ref.null and hyp.null):
        yield "C" if are_equal(ref, hyp) else "S", ref.written, hyp.written
