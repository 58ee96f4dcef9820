"""What answers requests: language models and weights, loaded once."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lmtools.api.weights import plan_of
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError, one_line
from lmtools.base.grammar import parse_json
from lmtools.base.log import say
from lmtools.base.specs import LMSpec
from lmtools.formats import jsonl
from lmtools.formats.checks import Utterances, components
from lmtools.rescoring.defaults import is_default, load_weights
from lmtools.rescoring.features import ScoreColumns, find_divisors, summed
from lmtools.rescoring.lists import check_signatures, rescore_lists
from lmtools.score import load, score_texts
from lmtools.score.lists import doubt_scored
from lmtools.types import Hypothesis, NBest

SOURCE = "the request"  # in messages
PLACE = "place"  # in `extra`, while hypotheses are sorted: the place in the request's list
# which default weights, read before any list has come, are checked with
PROBE = [NBest("probe", (Hypothesis("", {"am": 0.0}),))]


class Request(NamedTuple):
    """The lists of a request; `single`: it was no array of lists, but one; `texts`: of all their
    hypotheses; `names`: of the hypotheses' own scores.
    """

    lists: list[NBest]
    single: bool
    texts: list[str]
    names: tuple[str, ...]


class Scored(NamedTuple):
    """A request, and by model the log-probability and the tokens of its texts, float64 (2, N)."""

    request: Request
    rows: Mapping[str, np.ndarray]


class Answer(NamedTuple):
    """The JSON of an answer, and how many lists and hypotheses it is of."""

    content: bytes
    lists: int
    hypotheses: int


class Chooser:
    """Language models by name, and weights that they were tuned with; not for several threads.

    Scores are computed as by `lmtools score`, lists sorted as by `lmtools rescore`; `warnings` are
    of the latter's check that these are the models of the weights. UserError where they are not.
    `scorers` are the models where they are loaded.
    """

    def __init__(self, specs: Mapping[str, LMSpec], path: str, computing: Computing, scorers=None):
        self.path, self.computing = path, computing
        self.told: set[str] = set()  # models of which it is said that they hardly know a word
        names = {name: [] for name in specs}
        self.weights = load_weights(path, PROBE, ScoreColumns(names, {}, {}))
        self.columns = [name for name in self.weights.features if summed(name) in specs]
        unused = [name for name in specs if name not in map(summed, self.columns)]
        if unused:
            raise UserError(
                f"{path}: no weight for {unused[0]!r}: it has {', '.join(self.weights.features)};"
                " give the model the name that it was tuned under, as in --lm NAME=LM"
            )
        self.scorers = scorers or {name: load(spec, computing) for name, spec in specs.items()}
        self.paths = {name: specs[summed(name)].lm for name in self.columns}
        self.signatures = {name: self.scorers[summed(name)].signature for name in self.columns}
        given = ScoreColumns(dict.fromkeys(self.columns, ()), self.signatures, self.paths)
        self.warnings = check_signatures(self.weights, given, path)

    def answer(self, bodies: Sequence[bytes]) -> list[Answer | Exception]:
        """Return the answer to each request, as `read_request` takes it, or its error; the
        hypotheses of all are scored together, and lists with the same scores sorted together.
        """
        results = [attempt(read_request, body) for body in bodies]
        attempt_groups(self.score, results, lambda request: None)
        attempt_groups(self.rescore, results, lambda scored: scored.request.names)
        return results

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Score the texts of requests, each text once."""
        texts = [request.texts for request in requests]
        flat = [text for some in texts for text in some]
        rows = dict.fromkeys(self.scorers, np.zeros((2, 0)))
        for name, scorer in self.scorers.items() if flat else ():
            scored = score_texts(flat, scorer, self.computing)
            if name not in self.told:
                counts = int(scored.unknown.sum()), int(scored.tokens.sum()) - len(flat)
                for line in doubt_scored(SOURCE, flat, counts, scorer, lists=True):
                    say(line)
                    self.told.add(name)  # once: lists of one client are alike
            rows[name] = np.stack([scored.log_prob, scored.tokens])
        bounds = pairwise(np.cumsum([0, *map(len, texts)]))
        return [
            Scored(request, {name: row[:, begin:end] for name, row in rows.items()})
            for request, (begin, end) in zip(requests, bounds, strict=True)
        ]

    def rescore(self, scored: Sequence[Scored]) -> list[Answer]:
        """Return the answers to requests whose hypotheses have scores of the same names."""
        requests = [request for request, _ in scored]
        lists = [n for request in requests for n in request.lists if n.hyps]
        for place, nbest in enumerate(lists):
            hyps = enumerate(nbest.hyps)
            tagged = (Hypothesis(hyp.text, hyp.scores, {PLACE: str(i)}) for i, hyp in hyps)
            lists[place] = replace(nbest, hyps=tuple(tagged))
        rows = {
            name: np.concatenate([rows[name] for _, rows in scored], axis=1)
            for name in self.scorers
        }
        best = iter(self.sort(lists, rows) if lists else ())
        answers = []
        for request in requests:
            trees = [
                describe(nbest, next(best) if nbest.hyps else nbest) for nbest in request.lists
            ]
            content = json.dumps(trees[0] if request.single else trees, ensure_ascii=False)
            answers.append(Answer(content.encode(), len(trees), len(request.texts)))
        return answers

    def sort(self, lists: list[NBest], rows: Mapping[str, np.ndarray]) -> list[NBest]:
        bounds = np.cumsum([len(nbest.hyps) for nbest in lists])[:-1]
        values = {}
        for name in self.columns:
            parts = zip(lists, *(np.split(row, bounds) for row in rows[summed(name)]), strict=True)
            values[name] = [
                log_prob / find_divisors(name, nbest, tokens) for nbest, log_prob, tokens in parts
            ]
        columns = ScoreColumns(values, self.signatures, self.paths)
        weights = self.weights
        if is_default(self.path):  # of whatever scores the lists have
            weights = load_weights(self.path, lists, columns)
        _, chosen = rescore_lists(
            lists, columns, plan_of(columns), {None: weights}, SOURCE, lambda _: self.path
        )
        return next(chosen)[1]


def attempt(function: Callable, *arguments):
    """Return what the function does, or the error that it raises: one request's must not be
    another's.
    """
    try:
        return function(*arguments)
    except Exception as error:
        return error


def attempt_groups(function: Callable[[list], list], items: list, key: Callable) -> None:
    """Put what the function makes of each item, given all that have the same key, in its place, or
    the error that it raises of this item alone; errors among the items stay.
    """
    groups: dict = {}
    for place, item in enumerate(items):
        if not isinstance(item, Exception):
            groups.setdefault(key(item), []).append(place)
    for places in groups.values():
        given = [items[place] for place in places]
        made = attempt(function, given)
        if isinstance(made, Exception):  # of one of them
            parts = [attempt(function, [item]) for item in given] if len(given) > 1 else [made]
            made = [one if isinstance(one, Exception) else one[0] for one in parts]
        for place, result in zip(places, made, strict=True):
            items[place] = result


def read_request(body: bytes) -> Request:
    """Read a request: a list as a line of nbest.jsonl has it, or an array of such lists; UserError
    for anything else.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{SOURCE}: not UTF-8; encode the JSON as UTF-8") from None
    tree = parse_json(text, SOURCE)
    single = not isinstance(tree, list)
    if not single and not tree:
        raise UserError(f"{SOURCE}: no utterances; give the recogniser's N-best lists")
    lists, utterances, names = [], Utterances(), None
    for place, one in enumerate([tree] if single else tree):
        where = SOURCE if single else f"{SOURCE}: list {place + 1}"
        nbest = jsonl.utterance(one, where)
        utterances.add(nbest.utt, where)
        names = components(nbest, names, where)
        lists.append(nbest)
    hyps = [hyp for nbest in lists for hyp in nbest.hyps]
    return Request(lists, single, [hyp.text for hyp in hyps], tuple(hyps[0].scores if hyps else ()))


def spell_error(error: Exception) -> bytes:
    """Return an error as JSON; of one that is not the request's fault only its kind."""
    if not isinstance(error, UserError):
        error = UserError(f"failed here ({type(error).__name__}); try it again, or alone")
    text = one_line(error).replace("--scores NAME=FILE", '"scores" of the hypotheses')
    return json.dumps({"error": text}).encode()


def describe(nbest: NBest, best: NBest) -> dict:
    """Return what is answered on a list: the chosen text, the ranks from 1 in the order of the
    totals, and the list in that order as `lmtools rescore --nbest-out` writes it.
    """
    order = [int(hyp.extra[PLACE]) for hyp in best.hyps]
    pairs = zip(order, best.hyps, strict=True)
    hyps = tuple(nbest.hyps[place].with_scores(hyp.scores) for place, hyp in pairs)
    tree = jsonl.as_tree(replace(nbest, hyps=hyps))
    chosen = hyps[0].text if hyps else ""
    return {"chosen": chosen, "order": [place + 1 for place in order], **tree}
