"""Global maps of NIST's scoring (`.glm`): rules that rewrite words before references and hypotheses
are compared, as csrfilt.sh and rfilter1 of sctk apply them.

A rule is `A => B`, or `A => B / C __ D` where A stands between C and D; square brackets or double
quotation marks hold blanks at the ends of a string. At each place of a text the first rule that
fits replaces A, and the search goes on behind it. Lines `;; INPUT_DEPENDENT_APPLICATION = "REGEXP"`
limit the rules below them to kinds of input (ctm, stm, trn) or to a side (ref, hyp). B may hold
alternations, `{ HE IS / HE HAS }`, and optional words, `(UH)`, which `alignment` scores.
"""

import functools
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines

HEAD = "*"  # first character of a line of settings
APPLIES = re.compile(r';;\s+INPUT_DEPENDENT_APPLICATION\s*=\s*"([^"]*)"')
TRUE = ("T", "TRUE", "YES", "Y", "1")
UPPER = str.maketrans({chr(code): chr(code - 32) for code in range(ord("a"), ord("z") + 1)})
HYPHEN = re.compile(r"([^( ])-(?=[^) ])")
SEVERAL = re.compile(r"(\(\s+[^()\s]+\s+)([^()\s]+)")  # an optional part of two words and more
OPTIONAL = re.compile(r"\([^()]+\)")
SIDES = ("ref", "hyp")


@dataclass(frozen=True)
class Rule:
    """One rule: `source` becomes `target` between the two contexts."""

    source: str
    target: str
    left: str = ""
    right: str = ""

    def fits(self, text: str, start: int, end: int) -> bool:
        """Return whether the contexts of text[start:end], which is the source, are the rule's."""
        before = start - len(self.left)
        return (
            before >= 0 and text.startswith(self.left, before) and text.startswith(self.right, end)
        )


@dataclass
class RuleSet:
    """The rules for one kind of input of one side, in order, with their settings."""

    rules: list[Rule] = field(default_factory=list)
    copy: bool = True  # what no rule fits stays
    cased: bool = True
    known: dict[str, list[int]] = field(default_factory=dict)
    lengths: dict[str, list[int]] = field(default_factory=dict)

    def finish(self) -> "RuleSet":
        """Build the index: of each source its rules, of each first letter the sources' lengths."""
        sets: dict[str, set[int]] = {}
        for number, rule in enumerate(self.rules):
            if rule.source:
                self.known.setdefault(rule.source, []).append(number)
                sets.setdefault(rule.source[0], set()).add(len(rule.source))
        self.lengths = {letter: sorted(sizes) for letter, sizes in sets.items()}
        return self

    def fold(self, text: str) -> str:
        """Return what of a text is compared: its letters in upper case where case is none."""
        return text if self.cased else text.translate(UPPER)

    def find(self, text: str, place: int) -> Rule | None:
        """Find the first rule that fits `text`, as `fold` gives it, at a place."""
        sizes = self.lengths.get(text[place], ())
        numbers = [
            next(fitting, None)
            for size in sizes
            if (fitting := self.fitting(text, place, place + size))
        ]
        first = min((number for number in numbers if number is not None), default=None)
        return None if first is None else self.rules[first]

    def fitting(self, text: str, start: int, end: int):
        """Return the numbers of the rules whose source is text[start:end] and that fit."""
        numbers = self.known.get(text[start:end], ())
        return (number for number in numbers if self.rules[number].fits(text, start, end))

    def apply(self, text: str) -> str:
        """Rewrite a text from left to right; contexts are those of the text as it came."""
        folded, place, out = self.fold(text), 0, []
        while place < len(text):
            rule = self.find(folded, place)
            if rule:
                out.append(rule.target)
            elif self.copy:
                out.append(text[place])
            place += len(rule.source) if rule else 1
        return "".join(out)


class GlobalMap:
    """The rules of a file for all kinds of input."""

    def __init__(self, path):
        self.path = path
        self.lines = [(number, line) for number, line in read_lines(path)]
        if not self.lines:
            raise UserError(f"{path}: is empty; give a file of rules `A => B / C __ D`")
        self.rules = functools.cache(self.build)
        self.word = functools.cache(self.rewrite_word)
        content = "\n".join(line for _, line in self.lines).encode()
        self.signature = f"glm:{Path(path).name}:{hashlib.sha256(content).hexdigest()[:8]}"
        self.rules("stm", "ref"), self.rules("ctm", "hyp")  # so that errors come at once

    def build(self, kind: str, side: str) -> RuleSet:
        """Return the rules for a kind (ctm, stm, trn) and side (ref, hyp); else UserError."""
        rules, applies, flag = RuleSet(), True, None
        for number, line in self.lines:
            where = f"{self.path}:{number}"
            if match := APPLIES.match(line):
                applies = is_for(match[1].lower(), (kind, side), where)
            if not applies:
                continue
            if flag is None:  # the first word of the file begins a comment wherever it stands
                flag = re.match(r"\S*", line)[0]
                continue
            line = line.rstrip()
            if not line or (flag and line.startswith(flag)):
                continue
            if line.startswith(HEAD):
                read_setting(line, rules, where)
            else:
                rule = parse_rule(line.split(flag)[0].rstrip() if flag else line, where)
                rules.rules.append(rule)
        if not rules.cased:
            rules.rules = [
                Rule(fold(r.source), r.target, fold(r.left), fold(r.right)) for r in rules.rules
            ]
        return rules.finish()

    def rewrite(self, text: str, kind: str, side: str, where: str = "") -> str:
        """Rewrite the words of a reference or hypothesis, in upper case, hyphens as blanks, as
        `csrfilt.sh -dh` does; a ctm word by word. UserError for parentheses not about words.
        """
        if kind == "ctm":
            return " ".join(" ".join(self.word(word, side) for word in text.split()).split())
        line = " ".join(["", *text.split(), ""])
        if re.search("[()]", OPTIONAL.sub("", line)):
            raise UserError(f"{where or self.path}: parentheses in {text[:60]!r} are not in pairs")
        return " ".join(self.filter_line(line or " ", kind, side).split())

    def rewrite_word(self, word: str, side: str = "hyp") -> str:
        if re.search("[()]", OPTIONAL.sub("", word)):
            raise UserError(f"{self.path}: parentheses in the word {word!r} are not in pairs")
        return self.filter_line(word, "ctm", side)

    def filter_line(self, line: str, kind: str, side: str) -> str:
        """Apply the rules for a kind and side to a line, and what csrfilt.sh does around them."""
        line = line.translate(UPPER).replace("(", "( ").replace(")", " )")
        line = self.rules(kind, side).apply(f" {line} \n").removesuffix("\n")
        line = HYPHEN.sub(r"\1 ", line)
        while (parted := SEVERAL.sub(r"\1) ( \2", line, count=1)) != line:
            line = parted
        line = line.removeprefix(" ").removesuffix(" ")
        return re.sub(r"\s+\)", ")", re.sub(r"\(\s+", "(", line))


def fold(text: str) -> str:
    return text.translate(UPPER)


def is_for(pattern: str, names: Sequence[str], where: str) -> bool:
    try:
        return any(re.search(pattern, name) for name in names)
    except re.error as error:
        raise UserError(f"{where}: {pattern!r} is no regular expression ({error})") from None


def read_setting(line: str, rules: RuleSet, where: str) -> None:
    value = re.search(r"[\"']([^\"']*)", line)
    if not value:
        raise UserError(f"{where}: a setting without a value in quotation marks; add it")
    name, chosen = line.upper(), value[1].upper()
    if "FORMAT" in name and chosen != "NIST1":
        raise UserError(f"{where}: format {value[1]!r}; rules of NIST1 are known")
    if "COPY_NO_HIT" in name:
        rules.copy = chosen in TRUE
    if "CASE_SENSITIVE" in name:
        rules.cased = chosen in TRUE


def parse_rule(line: str, where: str) -> Rule:
    """Parse `A => B / C __ D`, the context being optional, after the last slash that no bracket of
    B holds; UserError without `=>`.
    """
    arrow = line.find("=>")
    if arrow < 0:
        raise UserError(f"{where}: no rule `A => B` or `A => B / C __ D`; correct the line")
    slash, slot = line.rfind("/"), -1
    if slash >= 0:
        if line[slash:].find("]") < line[slash:].find("["):
            slash = -1
        else:
            slot = line.find("_", slash)
    source = unwrap(line[:arrow].strip())
    target = behind(line[arrow : slash if slash >= 0 else None].rstrip())
    if slash < 0 or slot < 0:
        return Rule(source, target)
    return Rule(source, target, behind(line[slash:slot].rstrip()), behind(line[slot:]))


def behind(text: str) -> str:
    parts = text.split(maxsplit=1)
    return unwrap(parts[1]) if len(parts) > 1 else ""


def unwrap(text: str) -> str:
    wrapped = len(text) > 1 and (text[0], text[-1]) in (("[", "]"), ('"', '"'))
    return text[1:-1] if wrapped else text
