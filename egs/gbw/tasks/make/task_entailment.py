"""Pairs of sentences that entail, contradict or leave open, by rules over the clauses of
task_grammar.py; make_tasks.py writes them.

What a premise says once and positively entails what says less, a denial what says more. A
hypothesis is never drawn for its label alone: those that are kept are as many of each label with
the same outward form (`shape`), so that the form tells nothing.
"""

from collections import defaultdict
from dataclasses import replace

from task_grammar import Clause, Grammar, Phrase, inner, passive_of
from task_trees import Speaker

LABELS = ("entailment", "neutral", "contradiction")
TRIES = 6  # hypotheses of a label that are drawn for a premise


class Inference:
    """Draws pairs of clauses."""

    def __init__(self, grammar: Grammar):
        self.grammar, self.lexicon, self.random = grammar, grammar.lexicon, grammar.random
        self.implying = {wide: narrow for narrow, wide in self.lexicon.implied.items()}
        # the verbs that take the same as one
        self.fellows = {
            verb: verbs for verbs, _, _ in self.lexicon.groups if len(verbs) > 2 for verb in verbs
        }

    def premise(self) -> Clause:
        """Return a clause, affirmed or denied, on the whole with adjuncts."""
        clause = self.grammar.clause(0, lambda frame: not inner(frame))
        clause = replace(clause, negative=self.grammar.chance(0.5))
        for _ in range(2):
            if self.grammar.chance(0.6):
                clause = self.adjoined(clause)
        return clause

    def adjoined(self, clause: Clause) -> Clause:
        """Return the clause with one more adjunct of a role that it does not have."""
        more = replace(self.grammar.adjoined(clause), front=None)
        roles = [part.role for part in more.parts]
        return more if len(set(roles)) == len(roles) else clause

    def drop_adjunct(self, clause: Clause) -> Clause:
        """Return the clause without one of its adjuncts."""
        adjuncts = [part for part in clause.parts if part.role.startswith("AM-")]
        if not adjuncts:
            return clause
        gone = self.random.choice(adjuncts)
        return replace(clause, parts=tuple(part for part in clause.parts if part != gone))

    def any_phrase(self, clause: Clause, change, definite: bool = False) -> Clause:
        """Return the clause with a noun phrase changed; of a denial only a definite one."""
        parts = [part for part in clause.parts if part.slot in ("subj", "obj", "iobj")]
        parts = [part for part in parts if part.value.count == "the" or not definite]
        if not parts:
            return clause
        part = self.random.choice(parts)
        return clause.with_part(part.slot, change(part.value))

    def less(self, phrase: Phrase) -> Phrase:
        """Return a noun phrase without its adjective, what follows it, or its number, or with a
        wider noun.
        """
        wide = self.lexicon.wider.get(phrase.kind)
        ways = [
            phrase.adjective and replace(phrase, adjective=""),
            phrase.attribute and replace(phrase, attribute=None),
            phrase.count in self.lexicon.numbers and replace(phrase, count=""),
            wide and phrase.noun != wide and phrase.noun not in self.lexicon.mass
            and replace(phrase, noun=wide),
        ]  # fmt: skip
        return self.random.choice([way for way in ways if way] or [phrase])

    def bare(self, phrase: Phrase) -> Phrase:
        """Return a noun phrase without what only says which one is meant."""
        return replace(phrase, adjective="", attribute=None)

    def more(self, phrase: Phrase) -> Phrase:
        """Return a noun phrase of the same noun with something added."""
        if phrase.name or (phrase.adjective and phrase.attribute):
            return phrase
        for _ in range(20):
            drawn = self.grammar.phrase([phrase.kind])
            if drawn.adjective and not phrase.adjective and self.grammar.chance(0.5):
                return replace(phrase, adjective=drawn.adjective)
            if drawn.attribute and not phrase.attribute:
                return replace(phrase, attribute=drawn.attribute)
        return phrase

    def turned(self, clause: Clause) -> Clause:
        """Return the clause in the other voice, if it has one."""
        return replace(clause, passive=not clause.passive) if passive_of(clause) else clause

    def follows(self, clause: Clause) -> Clause:
        """Return what is true if the clause is."""
        verbs = self.implying if clause.negative else self.lexicon.implied
        for _ in range(self.random.choice([1, 2, 2, 3])):
            way = self.random.randrange(5)
            if way == 0:
                verb = verbs.get(clause.verb, clause.verb)
                clause = replace(clause, verb=verb) if self.grammar.allows(verb) else clause
            elif way == 1:
                clause = self.turned(clause)
            elif clause.negative:
                weaker = self.any_phrase(clause, self.bare, definite=True)
                clause = self.adjoined(clause) if way == 2 else weaker
            else:
                clause = (
                    self.drop_adjunct(clause) if way == 2 else self.any_phrase(clause, self.less)
                )
        return clause

    def excludes(self, clause: Clause) -> Clause | None:
        """Return what is false if the clause is true; None if nothing is found."""
        if clause.negative:  # all of what is denied, or something narrower
            changed = clause
            for _ in range(self.random.choice([0, 1, 2])):
                changed = (
                    self.turned(changed) if self.grammar.chance(0.4) else self.adjoined(changed)
                )
            return replace(changed, negative=False)
        statement, way = self.follows(clause), self.random.randrange(4)
        opposite = {a: b for a, b in self.lexicon.opposite.items() if self.grammar.allows(b)}
        if way == 0 and statement.verb in opposite:
            return replace(statement, verb=opposite[statement.verb])
        adverbs = [p for p in statement.parts if isinstance(p.value, str) and p.value in opposite]
        if way <= 1 and adverbs:
            other = replace(adverbs[0], value=opposite[adverbs[0].value])
            parts = (other if part == adverbs[0] else part for part in statement.parts)
            return replace(statement, parts=tuple(parts))
        if way == 2:
            return self.other_actor(statement)
        return replace(statement, negative=True)

    def leaves_open(self, clause: Clause) -> Clause | None:
        """Return what may be true or false; None if nothing is found."""
        way = self.random.randrange(3)
        if way == 0 and clause.negative:
            return self.drop_adjunct(clause)
        if way == 0:
            if self.grammar.chance(0.5):
                return self.adjoined(clause)
            return self.any_phrase(clause, self.more)
        statement = self.follows(clause)
        if way == 1 and clause.negative:
            return self.other_actor(statement)
        tables = (self.lexicon.opposite, self.lexicon.implied, self.implying)
        related = (statement.verb, *(table.get(statement.verb) for table in tables))
        verbs = [
            verb
            for verb in self.fellows.get(statement.verb, ())
            if verb not in related and self.grammar.allows(verb)
        ]
        if not verbs:
            return None
        return replace(statement, verb=self.grammar.pick(verbs), negative=self.grammar.chance(0.5))

    def other_actor(self, clause: Clause) -> Clause | None:
        """Return the clause with another subject of the same kind, if one is drawn."""
        first = clause.parts[0].value
        noun = self.grammar.phrase([first.kind]).noun if not first.name else first.noun
        if noun[0].isupper() or {noun, first.noun} & {self.lexicon.wider.get(first.kind)}:
            return None
        return clause.with_part("subj", replace(first, noun=noun)) if noun != first.noun else None


def shape(clause: Clause, lexicon) -> tuple:
    """Return what a sentence looks like: polarity, voice, adjuncts, wider nouns, how many
    modifiers.
    """
    phrases = [part.value for part in clause.parts if isinstance(part.value, Phrase)]
    return (
        clause.negative, clause.passive,
        tuple(sorted(part.role for part in clause.parts if part.role.startswith("AM-"))),
        any(phrase.noun == lexicon.wider.get(phrase.kind) for phrase in phrases),
        sum(bool(phrase.adjective) + bool(phrase.attribute) for phrase in phrases),
    )  # fmt: skip


def pairs(grammar: Grammar, count: int, seen: set[str], text) -> list[tuple[str, str, str]]:
    """Return `count` labels, premises and hypotheses, `text(clause)` of each, as many of each
    label; no premise is in `seen`, which gets those that are used.
    """
    inference, speaker = Inference(grammar), Speaker(grammar.lexicon)
    waiting = defaultdict(lambda: {label: [] for label in LABELS})
    chosen: list[tuple[str, str, str]] = []
    while len(chosen) < count:
        premise = inference.premise()
        spoken = text(speaker.sentence(premise))
        if spoken in seen:
            continue
        ways = (inference.follows, inference.leaves_open, inference.excludes)
        for label, way in zip(LABELS, ways, strict=True):
            for _ in range(TRIES):
                clause = way(premise)
                hypothesis = text(speaker.sentence(clause)) if clause else spoken
                if hypothesis == spoken:
                    continue
                queues = waiting[shape(clause, grammar.lexicon)]
                queues[label].append((label, spoken, hypothesis))
                if all(queues.values()):
                    chosen += [queue.pop(0) for queue in queues.values()]
                break
    chosen = chosen[:count]
    seen |= {premise for _, premise, _ in chosen}
    return chosen
