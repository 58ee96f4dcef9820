"""Tables of phrases.sh: what phrases bring and cost, also by the weight of default:phrases, and
what the lists hold at all.

    phrases_table.py WORDS GLOSSARY BOOKS NEAR

WORDS/SYSTEM/CASE.N.json is what `lmtools evaluate --words` wrote of N distractors; CASE.near.json
is of lists with new hypotheses, which are NEAR/SET.jsonl, against those without them.
"""

import json
import sys
from pathlib import Path

import numpy as np

from lmtools.base.errors import exit_with_message
from lmtools.formats import read
from lmtools.phrases.column import score_phrases
from lmtools.phrases.evaluate import PLACES, PhraseAlignment, PhraseDifference
from lmtools.phrases.glossary import PhraseSpec, read_glossary
from lmtools.phrases.harm import COUNTED, measure_harm
from lmtools.rescoring.features import rank_score

SETS = {"native": "native/test", "non-native": "non-native/test", "vosk": "vosk/dev"}
SYSTEMS = {"first": "first pass", "ngram": "with 4-gram", "default": "default:phrases"}
WEIGHTS = (0, 1, 2, 3, 4, 10)  # of default:phrases
NUMBERS = ("0", "100", "1000", "drugs", "near")
HEAD = """| lists | system | distractors | recall % | B-WER % | change [95% CI] | p | U-WER % \
| change [95% CI] | p | false alarms |
|---|---|---:|---|---|---|---|---|---|---|---|"""


def change(gap: dict) -> str:
    """A difference with its interval, and p."""
    ends = ", ".join(f"{end:+.2f}" for end in gap["interval"] or ()) or "-"
    p = PhraseDifference(**gap).describe().removeprefix("p = ")
    return f"{gap['difference']:+.2f} [{ends}] | {p}"


def describe(path: Path, case: str, system: str, number: str) -> str:
    """A row of the table."""
    words = json.loads(path.read_text())["words"]
    before, after = (tree["figures"] for tree in (words["against"], words))
    cells = [case, SYSTEMS[system], number]
    for figure in ("recall", "B-WER", "U-WER"):
        cells.append(f"{before[figure]['score']:.2f} → {after[figure]['score']:.2f}")
        cells += [change(words["differences"][figure])] if figure != "recall" else []
    cells.append(f"{words['against']['false alarms']} → {words['false alarms']}")
    return f"| {' | '.join(cells)} |"


def find_bounds(glossary: Path, lists: Path) -> tuple[int, int, int, int]:
    """Phrase words of the references; errors in them of the first hypotheses, of the best
    hypotheses, and words that are in no hypothesis at all.
    """
    words = read_glossary(PhraseSpec(str(glossary)))
    sums = np.zeros(4, dtype=np.int64)
    for nbest in read(lists):
        automaton = words.unweighted(nbest.utt)
        rows = [PhraseAlignment.of(nbest.ref, hyp.text, automaton) for hyp in nbest.hyps]
        counts = np.stack([row.count() for row in rows])
        said = {span.written for row in rows for span in row.ref_spans}
        held = {span.written for row in rows for span in row.hyp_spans}
        errors = counts[:, PLACES["phrase errors"]]
        sums += counts[0, PLACES["phrase words"]], errors[0], errors.min(), len(said - held)
    return tuple(sums.tolist())


def weigh(glossary: Path, lists: Path) -> np.ndarray:
    """Errors in rare words, in others, false alarms (WEIGHTS, 3) by the weight of phrases beside
    the order of the lists, where they differ in phrases.
    """
    words = read_glossary(PhraseSpec(str(glossary)))
    nbests = read(lists)
    column = [*score_phrases(nbests, words).log_prob.values()]
    harm = measure_harm(nbests, column, words)
    return np.array(
        [
            sum(
                rows[np.argmax([rank_score(r) + weight * v for r, v in enumerate(values)] or [0])]
                for rows, values in zip(harm, column, strict=True)
            )
            for weight in WEIGHTS
        ]
    )


def main(words: str, glossary: str, books: str, near: str) -> None:
    """Print the tables."""
    print(HEAD)
    for case in SETS:
        for system in SYSTEMS:
            for number in NUMBERS:
                path = Path(words, system, f"{case}.{number}.json")
                if path.exists():
                    print(describe(path, case, system, number))
    sets = ("native/dev", "native/test", "non-native/dev", "non-native/test", "vosk/dev")
    sums = sum(
        weigh(Path(glossary, number, f"{name}.jsonl"), Path(books, name, "nbest.jsonl"))
        for name in sets
        for number in ("100", "1000")
    )
    print(f"\n| weight | {' | '.join(name.replace('_', ' ') for name in COUNTED)} |")
    print(f"|---:{'|---:' * len(COUNTED)}|")
    for weight, counts in zip(WEIGHTS, sums.tolist(), strict=True):
        print(f"| {weight} | {' | '.join(map(str, counts))} |")
    print("\n| lists | rare words | wrong in the first | wrong in the best | in no hypothesis |")
    print("|---|---:|---:|---:|---:|")
    for case, name in SETS.items():
        lists = {
            case: Path(books, name, "nbest.jsonl"),
            f"{case}, near words": Path(near, f"{name}.jsonl"),
        }
        for row, path in lists.items():
            bounds = find_bounds(Path(glossary, "0", f"{name}.jsonl"), path)
            print(f"| {row} | {' | '.join(map(str, bounds))} |")


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
