"""The lattices that pocketsphinx writes: reading, scoring with the decoder's language model, exact
N-best lists, pruning.

SLF with words on the nodes and natural-log acoustic scores on the links; a link's score belongs to
the word of the node that it leaves. `!SENT_START`, `!SENT_END` and `!NULL` stand for sentence ends,
silence and noise, whose penalties pocketsphinx has already added to the links. The last word has
its score on no link: it is the same for every path.
"""

import heapq
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from lmtools.base.files import read_lines

Context = tuple[str, ...]  # the last two words, most recent first
IMPOSSIBLE = float("-inf")


@dataclass(frozen=True)
class Slf:
    """One lattice: `words[node]` is None for sentence ends and fillers; `links` are (source,
    target, acoustic score).
    """

    start: int
    end: int
    words: list[str | None]
    times: list[float]
    links: list[tuple[int, int, float]]
    node_lines: list[str]
    link_lines: list[str]

    @cached_property
    def order(self) -> list[int]:
        """Return the nodes by start time: every link leads to a later node."""
        return sorted(range(len(self.words)), key=lambda node: self.times[node])

    @cached_property
    def exits(self) -> list[dict[str | None, list[tuple[int, float]]]]:
        """Return for each node its links as (target, score), by the word of the target (`</s>` at
        the end, None: filler).
        """
        exits = [{} for _ in self.words]
        for source, target, score in self.links:
            exits[source].setdefault(self.word(target), []).append((target, score))
        return exits

    @cached_property
    def followers(self) -> list[dict[int, float]]:
        """Return for each node the next word nodes (or the end), over any fillers between, with the
        best acoustic score of getting there.
        """
        followers = [{} for _ in self.words]
        for node in reversed(self.order):
            best = followers[node]
            for word, links in self.exits[node].items():
                for target, score in links:
                    for last, rest in [(target, 0.0)] if word else followers[target].items():
                        best[last] = max(best.get(last, IMPOSSIBLE), score + rest)
        return followers

    def word(self, node: int) -> str | None:
        return "</s>" if node == self.end else self.words[node]

    def of_posterior(self, least: float) -> "Slf":
        """Return the lattice without links of a lower posterior."""
        lines = zip(self.links, self.link_lines, strict=True)
        kept = [pair for pair in lines if float(pair[1].rpartition("p=")[2]) >= least]
        links, link_lines = zip(*kept, strict=True)
        return replace(self, links=[*links], link_lines=[*link_lines])


def read_slf(path) -> Slf:
    """Return the lattice that pocketsphinx wrote in `path`; words in upper case. One that ends in a
    word, as 2 of 5,000 do, gets a sentence end after it.
    """
    header, nodes, links = {}, [], []
    for _, line in read_lines(path):
        fields = {} if line.startswith("#") else dict(part.split("=", 1) for part in line.split())
        if "I" in fields:
            assert int(fields["I"]) == len(nodes), f"{path}: nodes out of order"
            nodes.append((line, fields))
        elif "J" in fields:
            links.append((line, fields))
        else:
            header.update(fields)
    assert (int(header["N"]), int(header["L"])) == (len(nodes), len(links)), f"{path}: incomplete"
    end = int(header["end"])
    if not nodes[end][1]["W"].startswith("!"):
        last, end = end, len(nodes)
        for table, line in [
            (nodes, f"I={end}\tt={nodes[last][1]['t']}\tW=!SENT_END\tv=1"),
            (links, f"J={len(links)}\tS={last}\tE={end}\ta=0\tp=1"),
        ]:
            table.append((line, dict(part.split("=", 1) for part in line.split())))
    words = [None if fields["W"].startswith("!") else fields["W"].upper() for _, fields in nodes]
    times = [float(fields["t"]) for _, fields in nodes]
    triples = [(int(fields["S"]), int(fields["E"]), float(fields["a"])) for _, fields in links]
    return Slf(
        int(header["start"]),
        end,
        words,
        times,
        triples,
        [line for line, _ in nodes],
        [line for line, _ in links],
    )


@dataclass(frozen=True)
class Scored:
    """A lattice with a language model: a path scores its acoustic score + `scale` * LM + `penalty`
    a word (`</s>` is one).

    `probability(word, context)` is a natural logarithm; the context is the last two words, most
    recent first.
    """

    lattice: Slf
    probability: Callable[[str, Context], float]
    scale: float
    penalty: float

    def step(self, word: str | None, context: Context) -> tuple[float, Context]:
        """Return what a word adds to the score, acoustics apart, and the context after it; fillers
        (None) are transparent.
        """
        if word is None:
            return 0.0, context
        return self.scale * self.probability(word, context) + self.penalty, (word, *context[:1])

    @cached_property
    def forward(self) -> list[dict[Context, float]]:
        """Return for each node and context, the best score of getting there from the start."""
        best = [{} for _ in self.lattice.words]
        best[self.lattice.start][("<s>",)] = 0.0
        for node in self.lattice.order:
            for context, score in best[node].items():
                for word, links in self.lattice.exits[node].items():
                    step, after = self.step(word, context)
                    for target, acoustic in links:
                        best[target][after] = max(
                            best[target].get(after, IMPOSSIBLE), score + acoustic + step
                        )
        return best

    @cached_property
    def backward(self) -> list[dict[Context, float]]:
        """Return for each node and context that can be reached, the best score of getting from
        there to the end.
        """
        best = [dict.fromkeys(contexts, IMPOSSIBLE) for contexts in self.forward]
        best[self.lattice.end] = dict.fromkeys(best[self.lattice.end], 0.0)
        for node in reversed(self.lattice.order):
            for context in best[node]:
                for word, links in self.lattice.exits[node].items():
                    step, after = self.step(word, context)
                    rest = max(acoustic + best[target][after] for target, acoustic in links)
                    best[node][context] = max(best[node][context], step + rest)
        return best

    def through(self) -> list[float]:
        """Return for each link, the score of the best path over it."""
        return [
            max((self.over(link, at) for at in self.forward[link[0]]), default=IMPOSSIBLE)
            for link in self.lattice.links
        ]

    def over(self, link: tuple[int, int, float], context: Context) -> float:
        """Return the score of the best path over a link that has this context before it."""
        source, target, acoustic = link
        step, after = self.step(self.lattice.word(target), context)
        return self.forward[source][context] + acoustic + step + self.backward[target][after]

    def strings(self) -> Iterator[tuple[list[str], float, float]]:
        """Yield every distinct word string, best first: (words, best acoustic score, LM score).

        A* over word strings: an entry holds all nodes where its string can end, so that no string
        comes twice, and the backward scores are the exact rest of the best path, so that strings
        come in order.
        """
        ticket = itertools.count()  # breaks ties: dicts have no order
        heap = [(0.0, next(ticket), [], ("<s>",), 0.0, {self.lattice.start: 0.0})]
        while heap:
            _, _, words, context, lm, places = heapq.heappop(heap)
            if self.lattice.end in places:
                yield words, places[self.lattice.end], lm
                continue
            for word, arrivals in self.arrivals(places).items():
                longer, after = lm + self.probability(word, context), (word, *context[:1])
                text = words if word == "</s>" else [*words, word]
                rest = max(
                    acoustic + self.backward[node][after] for node, acoustic in arrivals.items()
                )
                bound = rest + self.scale * longer + self.penalty * (len(text) + (word == "</s>"))
                heapq.heappush(heap, (-bound, next(ticket), text, after, longer, arrivals))

    def arrivals(self, places: dict[int, float]) -> dict[str, dict[int, float]]:
        """Return for each next word the nodes where it ends, with the best acoustic score; `places`
        are the nodes of the string so far.
        """
        arrivals: dict[str, dict[int, float]] = {}
        for node, score in places.items():
            for target, acoustic in self.lattice.followers[node].items():
                nodes = arrivals.setdefault(self.lattice.word(target), {})
                nodes[target] = max(nodes.get(target, IMPOSSIBLE), score + acoustic)
        return arrivals


def pruned(lattice: Slf, keep: list[bool], utt: str) -> str:
    """Return the lattice as an SLF text with only the links to keep, nodes and links renumbered,
    posteriors rounded to two digits.
    """
    links = [
        link
        for link, kept in zip(
            zip(lattice.links, lattice.link_lines, strict=True), keep, strict=True
        )
        if kept
    ]
    nodes = sorted({node for (source, target, _), _ in links for node in (source, target)})
    number = {node: i for i, node in enumerate(nodes)}
    head = [
        "VERSION=1.0",
        f"UTTERANCE={utt}",
        f"start={number[lattice.start]}",
        f"end={number[lattice.end]}",
    ]
    head.append(f"N={len(nodes)}\tL={len(links)}")
    body = [
        "\t".join([f"I={number[node]}", *lattice.node_lines[node].split("\t")[1:]])
        for node in nodes
    ]
    for i, ((source, target, _), line) in enumerate(links):
        acoustic, posterior = line.split("\t")[3:]
        body.append(
            f"J={i}\tS={number[source]}\tE={number[target]}\t{acoustic}\tp={float(posterior[2:]):.2g}"
        )
    return "\n".join([*head, *body]) + "\n"
