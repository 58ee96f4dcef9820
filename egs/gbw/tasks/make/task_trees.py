"""Puts the clauses of task_grammar.py into words, as trees of Universal Dependencies with semantic
roles after PropBank, right by construction.

A passive's agent, a coordinated verb's subject, an infinitive's subject and the noun that a
relative clause hangs on are arguments as in PropBank; a relative pronoun is R-A0 and so on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from task_grammar import Clause, Lexicon, Part, Phrase

TAGS = {  # part of speech of Universal Dependencies: those of the Penn Treebank
    "NOUN": "NN NNS", "VERB": "VB VBD VBZ VBP VBN", "PROPN": "NNP", "PRON": "WP WDT", "DET": "DT",
    "NUM": "CD", "ADJ": "JJ", "ADV": "RB WRB", "ADP": "IN", "CCONJ": "CC", "PART": "TO",
    "AUX": "MD",
}  # fmt: skip
UNIVERSAL = {tag: universal for universal, tags in TAGS.items() for tag in tags.split()}
RELATIONS = {"main": "root", "that": "ccomp", "inf": "xcomp", "conj": "conj", "gap": "acl:relcl"}
ORDER = {"iobj": 0, "obj": 1, "name": 2, "inf": 4, "that": 5}  # after the verb; 3 for all others
HUMAN = ("person", "ruler", "worker", "kin", "people", "child")


@dataclass(eq=False)
class Node:
    """A word in its tree; `arguments` are those of a predicate: words and roles."""

    form: str
    lemma: str
    tag: str
    relation: str
    left: "list[Node]" = field(default_factory=list)
    right: "list[Node]" = field(default_factory=list)
    sense: str = ""
    arguments: "list[tuple[Node, str]]" = field(default_factory=list)

    @property
    def universal(self) -> str:
        """Return the part of speech of Universal Dependencies."""
        if self.relation in ("aux", "aux:pass"):
            return "AUX"
        return "SCONJ" if self.relation == "mark" and self.tag == "IN" else UNIVERSAL[self.tag]

    def words(self, head: "Node | None" = None) -> Iterator[tuple["Node", "Node | None"]]:
        """Yield the words of the tree in their order, each with its head."""
        for child in self.left:
            yield from child.words(self)
        yield self, head
        for child in self.right:
            yield from child.words(self)


class Speaker:
    """Makes the words of clauses."""

    def __init__(self, lexicon: Lexicon):
        self.lexicon = lexicon

    def noun(self, phrase: Phrase, relation: str, preposition: str = "") -> Node:
        """Return the tree of a noun phrase, after a preposition if there is one."""
        tag = "NNP" if phrase.name else "NNS" if phrase.plural else "NN"
        form = self.lexicon.noun(phrase.noun, phrase.plural)
        node = Node(form, phrase.noun, tag, relation)
        if preposition:
            node.left.append(Node(preposition, preposition, "IN", "case"))
        if phrase.count in ("the", "a"):
            follows = phrase.adjective or phrase.noun
            an = phrase.count == "a" and follows[0] in "aeiou"
            node.left.append(Node("an" if an else phrase.count, phrase.count, "DT", "det"))
        elif phrase.count:
            node.left.append(Node(phrase.count, phrase.count, "CD", "nummod"))
        if phrase.adjective:
            node.left.append(Node(phrase.adjective, phrase.adjective, "JJ", "amod"))
        if phrase.attribute:
            node.right.append(self.noun(phrase.attribute[1], "nmod", phrase.attribute[0]))
        if phrase.other:
            other = self.noun(phrase.other, "conj")
            other.left.insert(0, Node("and", "and", "CC", "cc"))
            node.right.append(other)
        if phrase.relative:
            human = phrase.kind in HUMAN
            node.right.append(self.verb(phrase.relative, "gap", node, phrase.many, human))
        return node

    def sentence(self, clause: Clause) -> Node:
        """Return the tree of a sentence."""
        return self.verb(clause, "main")

    def verb(
        self, clause: Clause, mode: str, shared: Node | None = None, many=False, human=True
    ) -> Node:
        """Return the tree of a clause, its verb on top. `shared` stands around it and fills the
        slot that is None: `many` if it is plural, `human` if it is a person.
        """
        verb = Node(clause.verb, clause.verb, "VB", RELATIONS[mode])
        verb.sense = f"{clause.verb}.{clause.sense}"
        first: list[Node] = []  # before subject and auxiliary
        subject = controller = None
        later: list[tuple[int, Node]] = []
        for part in clause.parts:
            is_subject = part.slot == ("obj" if clause.passive else "subj")
            if part.slot in ("that", "inf"):
                continue
            relation, role = relation_of(part, is_subject, clause.passive), part.role
            if part.value is None:
                verb.arguments.append((shared, role))
                if mode != "gap":
                    continue
                node, role = pronoun(relation, human, "which"), f"R-{role}"
            elif part.slot and part.slot == clause.asked:
                node = pronoun(relation, part.value.kind in HUMAN, "what")
            elif isinstance(part.value, str):
                node = Node(part.value, part.value, "RB", relation)
            else:
                preposition = preposition_of(part, is_subject, clause.passive)
                node = self.noun(part.value, relation, preposition)
            verb.arguments.append((node, role))
            if node.tag in ("WP", "WDT"):
                first.append(node)
            elif is_subject:
                subject, many = node, part.value.many
            else:
                later.append((ORDER.get(part.slot, 3), node))
            if is_subject or part.slot == "obj":
                controller = node
        if clause.front:
            node = self.noun(clause.front.value, "obl", clause.front.slot)
            verb.arguments.append((node, clause.front.role))
            first.insert(0, node)
        if clause.asked in ("when", "where"):
            node = Node(clause.asked, clause.asked, "WRB", "advmod")
            verb.arguments.append((node, "AM-TMP" if clause.asked == "when" else "AM-LOC"))
            first.insert(0, node)
        later += self.clauses(clause, verb, controller)
        inverted = clause.asked not in ("", "subj")
        auxiliaries, verb.tag = chain(clause, many, inverted)
        verb.form = self.lexicon.forms(clause.verb)[verb.tag]
        middle = [subject] if subject else []
        if clause.negative:
            node = Node("not", "not", "RB", "advmod")
            verb.arguments.append((node, "AM-NEG"))
            auxiliaries.insert(1, node)
        middle = [auxiliaries.pop(0), *middle] if inverted else middle
        mark = [Node("that", "that", "IN", "mark")] if mode == "that" else []
        verb.left = [*mark, *first, *middle, *auxiliaries]
        verb.right = [node for _, node in sorted(later, key=lambda pair: pair[0])]
        if clause.other:
            other = self.verb(clause.other, "conj", subject or first[-1], many)
            other.left.insert(0, Node("and", "and", "CC", "cc"))
            verb.right.append(other)
        return verb

    def clauses(self, clause: Clause, verb: Node, controller: Node) -> Iterator[tuple[int, Node]]:
        """Yield the clauses in a clause, with their places in the order."""
        for part in clause.parts:
            if part.slot in ("that", "inf"):
                node = self.verb(part.value, part.slot, controller)
                verb.arguments.append((node, part.role))
                yield ORDER[part.slot], node


def pronoun(relation: str, human: bool, thing: str) -> Node:
    """Return what stands first in a relative clause or a question: who, whom, or what it is of a
    thing.
    """
    person = "who" if relation.startswith("nsubj") else "whom"
    tag = "WDT" if thing == "which" and not human else "WP"
    return Node(person if human else thing, "who" if human else thing, tag, relation)


def relation_of(part: Part, is_subject: bool, passive: bool) -> str:
    """Return how what fills a part hangs on its verb."""
    if is_subject:
        return "nsubj:pass" if passive else "nsubj"
    fixed = {"obj": "obj", "iobj": "iobj", "name": "xcomp", "": "advmod"}
    return fixed.get(part.slot, "obl")


def preposition_of(part: Part, is_subject: bool, passive: bool) -> str:
    """Return the preposition before what fills a part, or none."""
    if part.slot == "subj" and passive and not is_subject:
        return "by"
    return "" if part.slot in ("subj", "obj", "iobj", "name", "") else part.slot


def chain(clause: Clause, many: bool, inverted: bool) -> tuple[list[Node], str]:
    """Return the auxiliaries of a clause, and the tag of its verb."""
    tense, past = clause.tense, clause.tense == "past"
    bare = "VBN" if clause.passive else "VB"
    if tense == "inf":
        return [Node("to", "to", "TO", "mark")], "VB"
    if tense in ("will", "can"):
        passive = [Node("be", "be", "VB", "aux:pass")] if clause.passive else []
        return [Node(tense, tense, "MD", "aux"), *passive], bare
    tag = "VBD" if past else "VBP" if many else "VBZ"
    if clause.passive:
        form = ("were" if many else "was") if past else ("are" if many else "is")
        return [Node(form, "be", tag, "aux:pass")], bare
    if clause.negative or inverted:
        form = "did" if past else "do" if many else "does"
        return [Node(form, "do", tag, "aux")], bare
    return [], tag
