"""Texts with NIST's markup as networks of words: alternations `{ a / b c / @ }`, `@` being no word,
and optional words `(uh)`.

A network is a list of words in topological order, the first being none; each knows the words that
may come before it, in the order in which sclite tries them, so that of several best alignments the
same is chosen.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lmtools.base.errors import UserError

NULL = "@"
TOKEN = re.compile(r"[{}/]|[^\s{}]+")
INSIDE = re.compile(r"[{}/]|[^\s{}/]+")
MARKED = re.compile(r"[{}@*;\\()]|^-|-$|\s-|-\s")  # what a text without any of has no markup
LOWER = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
ESCAPED = re.compile(r"((?:[^;\\]|\\.)*)")
DEEPEST = 50  # alternations inside each other


@dataclass(frozen=True)
class Rules:
    """What counts as right beside equal words: optional words of the reference that are missing
    (`optional`, sclite's -D), and words of which a fragment `wor-` is the beginning or `-ord` the
    end (`fragments`, its -F).
    """

    optional: bool = False
    fragments: bool = False


@dataclass(frozen=True)
class NetworkWord:
    """A word as it is compared (`text`), in the way it was written, and what it is besides."""

    text: str
    written: str
    optional: bool = False
    fragment: bool = False

    @property
    def null(self) -> bool:
        """Return whether it stands for no word."""
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
    """Return the words of a text; each alternation is a list of alternatives, which are such
    sequences.
    """
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
    """Return the word that is written so: without a star behind it and tags after `;`, in lower
    case (ASCII letters).
    """
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
    """Yield all words of a text, of all alternatives."""
    return (token for token in INSIDE.findall(text) if token not in "{}/")
