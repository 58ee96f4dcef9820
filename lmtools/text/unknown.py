"""Text that a model hardly knows a word of: how much, which words, and why."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from lmtools.base.log import say
from lmtools.text.normaliser import NORMALISERS, Normaliser
from lmtools.text.unify import UNIFIERS, unifier

MANY = 0.2  # the share of unknown tokens from which a text is hardly of the model's kind
LOOKED_AT = 10_000  # texts in which the words are sought
# Forms of Unicode that the options below do not bring about
FORMS = ("nfc", "invisible", "separators", "digits", "nfkc")
# How unknown words may be written to be known: the options of lmtools convert, and what they do
CHANGES = {
    "--case lower": ("in lower case", Normaliser(case="lower")),
    "--case upper": ("in upper case", Normaliser(case="upper")),
    "--apostrophe straight": ("with straight apostrophes", Normaliser(apostrophe="straight")),
    "--punctuation strip": ("without punctuation", Normaliser(punctuation="strip")),
    **{f"--unify {name}": (UNIFIERS[name].about, unifier([name])) for name in FORMS},
    "--normaliser librispeech": ("in lower case without punctuation", NORMALISERS["librispeech"]),
    "--normaliser librispeech --case upper": (
        "in upper case without punctuation",
        Normaliser("upper", "strip", "straight", "NFKC"),
    ),
}


def explain(unknown: Mapping[str, int], known: Callable[[str], bool]) -> tuple[str, str]:
    """Return why words with these counts are probably unknown, and the options that mend it ('':
    none).
    """
    total, changed = sum(unknown.values()), {}
    for option, (_, change) in CHANGES.items():
        better = {word: change(word).split() for word in unknown}
        changed[option] = sum(
            unknown[word]
            for word, parts in better.items()
            if parts and parts != [word] and all(map(known, parts))
        )
    option = max(changed, key=changed.get)  # of equal ones the first, which changes least
    if changed[option] > 0.5 * total:
        return f"most of them are known {CHANGES[option][0]}", option
    return "another language or kind of text, or other tokens?", ""


def conversion(option: str) -> str:
    """Return the command that writes hypotheses and references as options of the normaliser say;
    --case alone would leave references.
    """
    return f"lmtools convert {'--normaliser none ' * option.startswith('--case')}{option}"


def unknown_words(texts: Iterable[str], known: Callable[[str], bool]) -> Counter[str]:
    """Return the words of the first texts that are not known, with counts, but `<unk>` itself."""
    counts = Counter(word for text in itertools.islice(texts, LOOKED_AT) for word in text.split())
    return Counter(
        {word: count for word, count in counts.items() if word != "<unk>" and not known(word)}
    )


def warn_unknown(path, unknown: int, tokens: int, model, **more) -> None:
    """Print the line of `describe_unknown` on standard error, if there is one."""
    for line in describe_unknown(path, unknown, tokens, model, **more):
        say(line)


def describe_unknown(
    path,
    unknown: int,
    tokens: int,
    model,
    texts: Iterable[str] = (),
    known: Callable[[str], bool] | None = None,
    lists: bool = False,
) -> Iterator[str]:
    """Yield one line where more than MANY of the `tokens` are `unknown`.

    The words are sought among the `texts`, normalised as the model does, by `known`. `lists`:
    `path` holds N-best lists.
    """
    if unknown <= MANY * tokens:
        return
    line = f"{path}: {unknown / tokens:.0%} of {tokens:,} tokens are unknown to {model}"
    words = unknown_words(texts, known) if known else Counter()
    if words:
        cause, option = explain(words, known)
        line += f", most often {', '.join(repr(word) for word, _ in words.most_common(3))}: {cause}"
    if words and option:
        script = option.replace("--unify", "utils/unify.py")
        does = f"{option} of lmtools subword and ngram does" if script == option else script
        here = f"write it so, as {does}"
        remedy = conversion(option) if lists else here
    elif lists:
        remedy = f"lmtools doctor --nbest {path} --lm {model} says more"
    else:
        remedy = "give text like that of the model's vocabulary"
    yield f"{line}; {remedy}"
