"""What the constructed sentences of make_tasks.py say: the words and frames of lexicon.yaml, and
clauses drawn from them, which task_trees.py puts into words.

Where a prepositional phrase after an object stands, the words decide: `struck the man with the
sword` has it at the verb, since `strike` takes weapons, `loved the man with the sword` at the noun.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from lmtools.base.config import load_yaml

HELD_OUT = 4  # every so manieth word of a list that is as long is for dev and test alone


@dataclass(frozen=True)
class Phrase:
    """A noun with what belongs to it; `count` is a, the, a number, or empty."""

    noun: str
    kind: str
    plural: bool = False
    count: str = "the"
    adjective: str = ""
    attribute: "tuple[str, Phrase] | None" = None
    relative: "Clause | None" = None
    other: "Phrase | None" = None

    @property
    def name(self) -> bool:
        """Return whether it is a proper name."""
        return self.noun[0].isupper()

    @property
    def many(self) -> bool:
        """Return whether its verb is in the plural."""
        return self.plural or self.other is not None


@dataclass(frozen=True)
class Part:
    """An argument or adjunct: its role, its slot (subj, obj, iobj, that, inf, name, a preposition,
    or empty for an adverb) and what fills it; None where the clause around it says it.
    """

    role: str
    slot: str
    value: "Phrase | Clause | str | None"


@dataclass(frozen=True)
class Clause:
    """A verb in one of its senses, with what it takes; `asked` is yes, subj, obj, when or where in
    a question.
    """

    verb: str
    sense: str
    parts: tuple[Part, ...]
    tense: str = "past"
    negative: bool = False
    passive: bool = False
    asked: str = ""
    front: Part | None = None
    other: "Clause | None" = None

    def part(self, slot: str) -> Part | None:
        """Return what fills a slot."""
        return next((part for part in self.parts if part.slot == slot), None)

    def with_part(self, slot: str, value) -> "Clause":
        """Return the clause with a slot filled otherwise."""
        return replace(
            self, parts=tuple(replace(p, value=value) if p.slot == slot else p for p in self.parts)
        )


class Lexicon:
    """lexicon.yaml: which words there are, in which forms."""

    def __init__(self):
        given = load_yaml(Path(__file__).with_name("lexicon.yaml"))
        self.kinds = {kind: words.split() for kind, words in given["nouns"].items()}
        self.families = {name: kinds.split() for name, kinds in given["families"].items()}
        self.names = {family: names.split() for family, names in given["names"].items()}
        self.adjectives = {kind: words.split() for kind, words in given["adjectives"].items()}
        self.adverbs = {role: words.split() for role, words in given["adverbs"].items()}
        self.described, self.numbers = given["described"].split(), given["numbers"].split()
        self.mass, self.plurals = set(given["mass"].split()), given["plurals"]
        self.irregular = {verb: forms.split() for verb, forms in given["irregular"].items()}
        self.attributes = {
            kind: [self.slot(slot) for slot in slots]
            for family, slots in given["attributes"].items()
            for kind in self.expand(family)
        }
        self.adjuncts = [self.argument(text) for text in given["adjuncts"]]
        # (verbs, frames, adjuncts): a frame is a sense and its arguments
        self.groups = [
            (
                group["verbs"].split(),
                [self.frame(text) for text in group["frames"]],
                [self.argument(text) for text in group.get("adjuncts", ())],
            )
            for group in given["verbs"].values()
        ]
        lists = [*self.kinds.values(), *self.names.values(), *self.adjectives.values()]
        lists += [*self.adverbs.values(), self.numbers, *(verbs for verbs, _, _ in self.groups)]
        self.kept = {word for words in lists for word in words[HELD_OUT - 1 :: HELD_OUT]}
        self.wider = given["wider"]
        pairs = [pair.split("=") for pair in given["opposites"].split()]
        self.opposite = {
            a: b for first, second in pairs for a, b in ((first, second), (second, first))
        }
        self.implied = dict(pair.split("=") for pair in given["implied"].split())

    def expand(self, kinds: str) -> list[str]:
        """Return kinds of nouns, families replaced by their kinds."""
        return [kind for name in kinds.split("|") for kind in self.families.get(name, [name])]

    def slot(self, text: str) -> tuple[str, list[str]]:
        """Return `with garment|weapon` as preposition and kinds."""
        slot, _, kinds = text.partition(" ")
        return slot, self.expand(kinds) if kinds else []

    def argument(self, text: str) -> tuple[str, str, list[str]]:
        """Return `A0 subj person` as role, slot and kinds."""
        role, _, rest = text.strip().partition(" ")
        return (role, *self.slot(rest))

    def frame(self, text: str) -> tuple[str, list[tuple[str, str, list[str]]]]:
        """Return `01 A0 subj person, A1 obj person` as a sense and its arguments."""
        sense, _, rest = text.partition(" ")
        return sense, [self.argument(part) for part in rest.split(",")]

    def noun(self, lemma: str, plural: bool) -> str:
        """Return the form of a noun."""
        return self.plurals.get(lemma, ending(lemma)) if plural else lemma

    def forms(self, verb: str) -> dict[str, str]:
        """Return the forms of a verb by their tags."""
        if verb[-1] == "y" and verb[-2] not in "aeiou":
            regular = verb[:-1] + "ied"
        else:
            regular = verb + ("d" if verb[-1] == "e" else "ed")
        past, participle = self.irregular.get(verb, (regular, regular))
        return {"VB": verb, "VBP": verb, "VBZ": ending(verb), "VBD": past, "VBN": participle}


def ending(word: str) -> str:
    """Return a noun's plural or a verb's third person."""
    if word[-1] == "y" and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "sh", "ch", "x", "go")) else "s")


class Grammar:
    """Draws clauses: `fresh` of the words, where there is a choice, are those of dev and test."""

    def __init__(self, lexicon: Lexicon, random: Random, fresh: float = 0.0):
        self.lexicon, self.random, self.fresh = lexicon, random, fresh

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def allows(self, word: str) -> bool:
        """Return whether a word may be drawn at all."""
        return self.fresh > 0 or word not in self.lexicon.kept

    def pick(self, words: list[str]) -> str:
        """Return a word of a list, of those that are kept for dev and test or of the others."""
        kept = [word for word in words if word in self.lexicon.kept]
        if kept and self.chance(self.fresh):
            return self.random.choice(kept)
        return self.random.choice([word for word in words if word not in kept] or kept)

    def phrase(self, kinds: list[str], barred: tuple = (), depth: int = 0) -> Phrase:
        """Return a noun phrase of one of the kinds; `barred` are prepositions and kinds that would
        belong to the verb.
        """
        lexicon, kind = self.lexicon, self.random.choice(kinds)
        family = next(
            (f for f, offered_kinds in lexicon.families.items() if kind in offered_kinds), "thing"
        )
        if family in lexicon.names and self.chance(0.2) and kind not in ("building", "child"):
            return Phrase(self.pick(lexicon.names[family]), family, count="")
        noun = self.pick(lexicon.kinds[kind])
        if kind in ("emotion", "season", "sacred_day"):
            return Phrase(noun, kind, count="" if kind == "emotion" else "the")
        mass = noun in lexicon.mass
        plural = not mass and self.chance(0.25)
        counts = ["the"] * 4 + (["", lexicon.numbers] if plural else [""] if mass else ["a"])
        count = self.random.choice(counts)
        count = self.random.choice(count) if isinstance(count, list) else count
        phrase = Phrase(noun, kind, plural, count)
        family = family if family in lexicon.adjectives else "mass" if mass else "thing"
        described = family != "thing" or kind in lexicon.described
        if described and self.chance(0.25):
            phrase = replace(phrase, adjective=self.pick(lexicon.adjectives[family]))
        if depth < 2 and self.chance(0.25 if depth else 0.4):
            offered = lexicon.attributes.get(kind, ())
            free = [
                (p, rest)
                for p, offered_kinds in offered
                if (rest := sorted(set(offered_kinds) - reserved(barred, p)))
            ]
            if free:
                preposition, offered_kinds = self.random.choice(free)
                phrase = replace(
                    phrase, attribute=(preposition, self.phrase(offered_kinds, barred, depth + 1))
                )
        return phrase

    def clause(self, depth: int = 0, wanted=lambda frame: True) -> Clause | None:
        """Return a clause; `wanted(frame)` says which frames will do: None if none does."""
        groups = [
            (verbs, fitting, adjuncts)
            for verbs, frames, adjuncts in self.lexicon.groups
            if (fitting := list(filter(wanted, frames)))
        ]
        if not groups:
            return None
        verbs, frames, adjuncts = self.random.choice(groups)
        verb, (sense, arguments) = self.pick(verbs), self.random.choice(frames)
        # what the verb takes stands at the verb
        takes = tuple((slot, kinds) for _, slot, kinds in (*arguments, *adjuncts))
        parts = [
            Part(role, slot, self.value(slot, kinds, takes, depth))
            for role, slot, kinds in arguments
        ]
        if adjuncts and self.chance(0.45):
            role, slot, kinds = self.random.choice(adjuncts)
            parts.append(Part(role, slot, self.phrase(kinds, takes, 1)))
        clause = Clause(verb, sense, tuple(parts))
        return replace(
            clause,
            tense=self.random.choice(["past"] * 5 + ["pres", "pres", "will", "can"]),
            negative=self.chance(0.15),
            passive=passive_of(clause) and self.chance(0.25),
        )

    def value(self, slot: str, kinds: list[str], takes: tuple, depth: int):
        """Return what fills a slot: a phrase, a clause or a name."""
        if slot == "name":
            return Phrase(self.pick(self.lexicon.names["person"]), "person", count="")
        if slot == "that":
            return self.clause(depth + 1, lambda frame: depth == 0 or not inner(frame))
        if slot == "inf":
            clause = self.clause(depth + 1, lambda frame: not inner(frame) and from_person(frame))
            parts = (replace(clause.parts[0], value=None), *clause.parts[1:])
            return replace(clause, parts=parts, tense="inf", negative=False, passive=False)
        return self.phrase(kinds, () if slot == "subj" else takes, depth)

    def sentence(self) -> Clause:
        """Return a clause with adjuncts, a relative clause, another beside it, or as a question."""
        clause, draw = self.clause(), self.random.random()
        embedded = clause.part("that") or clause.part("inf")
        if self.chance(0.4):
            clause = self.adjoined(clause)
        if draw < 0.15 and not embedded and not clause.passive:
            kinds = self.lexicon.expand("person")
            if clause.parts[0].value.kind in ("person", *kinds):
                other = self.clause(1, lambda frame: not inner(frame) and from_person(frame))
                # the same subject, which stands once
                parts = (replace(other.parts[0], value=None), *other.parts[1:])
                clause = replace(
                    clause,
                    other=replace(other, parts=parts, tense="past", passive=False),
                    tense="past",
                )
        elif draw < 0.3:
            asked = self.random.choice(["yes", "yes", "subj", "obj", "when", "where"])
            if not (embedded or clause.front or (asked == "obj" and not clause.part("obj"))):
                passive = clause.passive and asked not in ("subj", "obj")
                clause = replace(clause, asked=asked, passive=passive)
        elif draw < 0.5:
            clause = self.related(clause)
        elif draw < 0.6:
            clause = self.coordinated(clause)
        return clause

    def adjoined(self, clause: Clause) -> Clause:
        """Return with an adverb, a time or a manner; times may come first."""
        if self.chance(0.5):
            role = self.random.choice(list(self.lexicon.adverbs))
            part = Part(role, "", self.pick(self.lexicon.adverbs[role]))
        else:
            role, slot, kinds = self.random.choice(self.lexicon.adjuncts)
            part = Part(role, slot, self.phrase(kinds, depth=2))
            if role == "AM-TMP" and self.chance(0.5):
                return replace(clause, front=part)
        return replace(clause, parts=(*clause.parts, part))

    def related(self, clause: Clause) -> Clause:
        """Return with a relative clause where nothing of the verb follows it: first or last."""
        slot = self.random.choice(["subj", "obj"])
        part = clause.part(slot)
        first = slot == ("obj" if clause.passive else "subj")
        last = clause.parts[-1] == part and not clause.passive
        if not part or part.value.name or not (first or last):
            return clause
        gap = self.random.choice(["subj", "obj"])
        kind = part.value.kind
        inside = self.clause(2, lambda frame: not inner(frame) and gap_kind(frame, gap, kind))
        if not inside:
            return clause
        inside = replace(inside, passive=inside.passive and gap == "obj", tense="past")
        value = replace(part.value, attribute=None, relative=inside.with_part(gap, None))
        return clause.with_part(slot, value)

    def coordinated(self, clause: Clause) -> Clause:
        """Return with a second noun beside the subject or the object."""
        slot = self.random.choice(["subj", "obj"])
        part = clause.part(slot)
        if not part or part.value.name or part.value.attribute:
            return clause
        other = Phrase(self.pick(self.lexicon.kinds[part.value.kind]), part.value.kind)
        if other.noun == part.value.noun:
            return clause
        return clause.with_part(slot, replace(part.value, other=other))


def inner(frame) -> bool:
    """Return whether a frame has a clause in it."""
    return any(slot in ("that", "inf") for _, slot, _ in frame[1])


def from_person(frame) -> bool:
    """Return whether the subject of a frame acts and may be any person."""
    role, _, kinds = frame[1][0]
    return role == "A0" and {"ruler", "people"} <= set(kinds)


def gap_kind(frame, slot: str, kind: str) -> bool:
    """Return whether a noun of a kind may fill a slot of a frame."""
    return any(other == slot and kind in kinds for _, other, kinds in frame[1])


def reserved(takes: tuple, preposition: str) -> set[str]:
    """Return the kinds that a verb takes with a preposition."""
    return {kind for slot, kinds in takes if slot == preposition for kind in kinds}


def passive_of(clause: Clause) -> bool:
    """Return whether a clause has a passive."""
    return bool(clause.part("obj") and not clause.part("iobj") and clause.parts[0].role == "A0")
