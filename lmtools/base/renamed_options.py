"""Older spellings of options of the command line, and options that have gone."""

from collections.abc import Sequence

from lmtools.base.log import say

# Command -> an older spelling, taken for one version more -> today's.
RENAMED = {
    "lmtools convert": {"--from": "--format"},
    "lmtools rescore": {"--to": "--nbest-to"},
    "lmtools evaluate": {"--json": "--out"},
    "lmtools embed": {"--layers": "--layer", "--batch-rows": "--rows"},
    "lmtools sts": {"--layers": "--layer", "--batch-rows": "--rows"},
    "lmtools lattice": {"--from": "--format", "--n": "--depth"},
    "lmtools lattice rescore": {
        "--nbest": "--nbest-out",
        "--text": "--text-out",
        "--order": "--max-ngram-order",
    },
    "lmtools.bridges.espnet": {"--tokens": "--token-list"},
}


# Commands whose --lm takes options that were flags -> these flags, each with or without a value.
LM_OPTIONS = {"--intact": False, **dict.fromkeys(("--normalise", "--oov-penalty"), True)}
LM_OPTIONS |= dict.fromkeys(("--noise", "--noise-power"), True)
MOVED = {
    **dict.fromkeys(("lmtools score", "lmtools ppl", "lmtools rescore"), LM_OPTIONS),
    "lmtools lattice": {name: LM_OPTIONS[name] for name in ("--normalise", "--oov-penalty")},
}
# Command -> a flag of before -> the name among --set, and its value: `*` the words after the flag,
# with commas between them.
TO_SET = {
    "lmtools tune": {
        "--objective": ("objective", "*"),
        "--form": ("form", "*"),
        "--lengths": ("lengths", "*"),
        "--no-words": ("lengths", ""),
        "--loop": ("loop", "true"),
        "--reference": ("reference", "*"),
        "--negative": ("negative", "*"),
        "--allow-negative": ("allow_negative", "true"),
        "--tolerance": ("tolerance", "*"),
    },
    "lmtools lattice": {
        "--prune-beam": ("prune_beam", "*"),
        "--prune-arcs": ("prune_arcs", "*"),
        "--cover-beam": ("cover_beam", "*"),
        "--tokens": ("tokens", "*"),
    },
    "lmtools translate": {"--length-penalty": ("length_penalty", "*"), "--batch": ("batch", "*")},
    "lmtools ngram": {
        "--backoff-bits": ("backoff_bits", "*"),
        "--pointer-bits": ("pointer_bits", "*"),
    },
    "lmtools bench": {
        f"--{name.replace('_', '-')}": (name, value)
        for name, value in {
            **dict.fromkeys(("threads", "repeats", "seconds", "hypotheses", "words"), "*"),
            **dict.fromkeys(("length", "batch", "contiguous", "first", "tokens", "by_beam"), "*"),
            **dict.fromkeys(("by_tokens", "figure", "architecture", "criteria"), "*"),
            **dict.fromkeys(("published", "representation"), "true"),
        }.items()
    },
}
# Command -> an option that has gone, taken for one version more -> why.
REMOVED = {
    "lmtools ngram": {"--no-arpa": "lmtools estimates text of any size itself and keeps lm.arpa"}
}


def update_spelling(argv: Sequence[str], command: str) -> list[str]:
    """Return the words after `command` with today's spellings of options, without those that have
    gone; a line on standard error names each older one.
    """
    renamed = dict(RENAMED.get(command, {}))
    for word in argv:
        renamed |= RENAMED.get(f"{command} {word}", {})
    words = []
    for word in argv:
        option, sign, value = word.partition("=")
        if why := REMOVED.get(command, {}).get(option):
            say(f"{command}: warning: {option} has gone: {why}", "warning")
            continue
        if new := renamed.get(option):
            message = f"{option} is now {new}; the next version takes {new} alone"
            say(f"{command}: warning: {message}", "warning")
        words.append(f"{new or option}{sign}{value}")
    return set_options(move_options(words, command), command)


def set_options(argv: Sequence[str], command: str) -> list[str]:
    """Return the words with flags that are among --set today."""
    moved, words, rest = TO_SET.get(command, {}), [], list(argv)
    while rest:
        flag, sign, value = rest.pop(0).partition("=")
        if flag not in moved:
            words.append(f"{flag}{sign}{value}")
            continue
        name, fixed = moved[flag]
        given = [value] if sign else []
        while fixed == "*" and rest and not rest[0].startswith("--") and not sign:
            given.append(rest.pop(0))
        setting = f"{name}={','.join(given) if fixed == '*' else fixed}"
        message = f"{flag} is now --set {setting}; the next version takes that alone"
        say(f"{command}: warning: {message}", "warning")
        words += ["--set", setting]
    return words


def move_options(argv: Sequence[str], command: str) -> list[str]:
    """Return the words with flags that are options of a model today in each value of --lm."""
    moved, words, rest = MOVED.get(command, {}), [], iter(argv)
    added = ""
    for word in rest:
        flag, sign, value = word.partition("=")
        if flag not in moved:
            words.append(word)
            continue
        value = (value if sign else next(rest, "")) if moved[flag] else "true"
        option = f"{flag[2:].replace('-', '_')}={value}"
        message = f"{flag} is now an option of the model, --lm LM,{option}"
        say(f"{command}: warning: {message}; the next version takes that alone", "warning")
        added += f",{option}"
    return [
        word + added * (before == "--lm" or word.startswith("--lm="))
        for before, word in zip(["", *words], words, strict=False)
    ]
