"""Words of a glossary's phrases beside all others: `lmtools evaluate --words`."""

import dataclasses
from collections.abc import Iterable

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.evaluate import References, show_phrases
from lmtools.evaluate.inputs import Texts
from lmtools.evaluate.phrase_changes import list_changes, list_errors
from lmtools.evaluate.phrases import PhraseEvaluation, compare_phrases, count_texts
from lmtools.formats import checks, kaldi_text
from lmtools.formats.glossary import load_glossary
from lmtools.text.phrases import PhraseSpec
from lmtools.verbs.help import Rare
from lmtools.verbs.options import GROUPS


def add_words(parser):
    """Declare what --words takes."""
    help_text = (
        f"{GROUPS['input']['--words']['help']}, the changes against --against or else the errors"
    )
    parser.add("--words", help=help_text)
    help_text = "Kaldi utt2dur, for false alarms an hour"
    parser.add_argument("--utt2dur", metavar="F", help=Rare(help_text))


def evaluate_words(refs: References, hyp: Texts, against: Texts | None, args) -> dict:
    """Return what --words asks for, printed on the way; nothing without it."""
    if not args.words:
        if args.utt2dur:
            raise UserError("--utt2dur: only --words counts by the hour; give both")
        return {}
    glossary = load_glossary(PhraseSpec.parse(args.words))
    texts = first_references(refs)
    systems = [system.texts for system in (hyp, against) if system]
    seconds = sum_seconds(args.utt2dur, texts) if args.utt2dur else None
    say_lines(glossary.warn_absent(pair for side in (texts, *systems) for pair in side.items()))
    results = [PhraseEvaluation(count_texts(texts, s, glossary), seconds) for s in systems]
    tree = show_phrases.tree(results[0], args.seed)
    tree["errors"] = list_errors(texts, hyp.texts, glossary)
    print_rows(show_phrases.lines(results[0], args.seed))
    if against is None:
        print_rows(show_phrases.change_lines(tree["errors"]))
        return {"words": tree}
    tree["against"] = show_phrases.tree(results[1], args.seed)
    print_rows(
        f"against {against.path}: {row}" for row in show_phrases.lines(results[1], args.seed)
    )
    differences = compare_phrases(*results, args.seed)
    tree["differences"] = {name: dataclasses.asdict(gap) for name, gap in differences.items()}
    tree["changes"] = list_changes(texts, tuple(systems), glossary)
    print_rows(show_phrases.difference_lines(differences))
    print_rows(show_phrases.change_lines(tree["changes"]))
    return {"words": tree}


def print_rows(rows: Iterable[str]) -> None:
    """Print lines."""
    for row in rows:
        print(row)


def first_references(refs: References) -> dict[str, str]:
    """Return the references; UserError where an utterance has several."""
    for utt, ref in refs.refs.items():
        if not isinstance(ref, str):
            raise UserError(f"--words: utterance {utt!r} has {len(ref)} references; give one --ref")
    return dict(refs.refs)


def sum_seconds(path: str, utterances: Iterable[str]) -> float:
    """Return the seconds of utterances by a file utt2dur; UserError where it lacks one."""
    seconds = kaldi_text.read(path)
    if missing := [utt for utt in utterances if utt not in seconds]:
        raise UserError(
            f"{path}: no seconds of utterance {missing[0]!r}; give the utt2dur of this set"
        )
    return sum(checks.number(seconds[utt], path, f"the seconds of {utt!r}") for utt in utterances)
