"""How a parser explains itself: --help shows the options that most users need, --help-all every
option; both end with examples. Wrong usage gets the verb's usage and what may have been meant.
"""

import argparse
import difflib
import re
import sys
from collections.abc import Iterable

WIDTH = 100
WRONG_USAGE = 2  # exit status
# verbs (none: a verb itself), names of what is gone from them, what to do: a name as it is given
GONE = (
    ("", "bench", "run python benchmarks/bench.py KIND"),
    ("", "verify", "sha256sum -c checks files that sha256sum listed"),
    ("", "correct", "add hypotheses of your own to the lists (jsonl), and tune on them"),
    ("", "learn confusions", "give what users corrected as references to lmtools tune, and as text"
     " to lmtools ngram"),
    ("network", "undo", "give corrected texts as references to lmtools tune"),
    ("network", "propose recombine", "join the lists of a second recogniser with `lmtools pool`"),
    ("tune", "--reranker", "leave it out; tune on lists that are made as those to rescore"),
    ("harm", "--correct --weights --lm", "leave it out; harm counts what a glossary changes"),
    ("rescue", "--in-sample", "leave it out; `lmtools corpus --ref SET --leave-out-overlap` writes"
     " a text without lines of the references"),
    ("score ppl rescore lattice", "--intact --normalise --oov-penalty --noise --noise-power",
     "give it with its model: --lm LM,{}=VALUE"),
    ("convert", "--mass", "--dedup merges equal hypotheses and keeps the best score"),
    ("convert", "--drop-loops", "leave it out; `lmtools decode` writes no loops of Whisper"),
    ("tune", "--objective --form --reference --negative --lengths", "write --set {}=VALUE"),
    ("tune", "--loop", "leave it out; `lmtools decode` writes no loops of Whisper"),
    ("tune", "--allow-negative --tolerance", "leave it out"),
    ("tune", "--no-words", "write --set lengths="),
    ("tune rescore", "--systems", "list systems in the file of --experiment"),
    ("score ppl", "--context", "leave it out: no gain was significant, and perplexity was worse"),
    ("score", "--context-from --sessions", "leave it out, with --context"),
    ("lattice", "--prune-beam --cover-beam", "write --set {}=VALUE"),
    ("lattice", "--prune-arcs", "write --set prune_beam=VALUE"),
    ("lattice", "--n", "write --depth"),
    ("lattice", "--nbest --text", "write --{}-out"),
    ("lattice", "determinise", "`lmtools lattice nbest` gives each word sequence once"),
    ("translate", "--length-penalty --batch", "write --set {}=VALUE"),
    ("convert lattice", "--from", "write --format"),
    ("rescore", "--margin", "leave it out: --lm scores all hypotheses"),
    ("rescore", "--to", "write --nbest-to"),
    ("evaluate", "--json", "write --out"),
    ("evaluate", "--glm", "sctk's hubscr.pl, or csrfilt.sh and sclite, score by global maps what"
     " lmtools convert --to ctm and --to trn write"),
    ("embed sts", "--layers", "write --layer"),
    ("embed sts", "--batch-rows", "write --rows"),
    ("ngram", "--counts", "estimate from the text: --text F"),
    ("ngram", "--no-arpa", "leave it out; lm.arpa is kept"),
    ("report", "--csv", "read rows.csv, which report writes"),
)  # fmt: skip


class Rare(str):
    """Help that only --help-all shows, unless the option is required."""


class HelpText(argparse.HelpFormatter):
    """Leaves out and counts rare options unless `everything` is shown; keeps short lines."""

    def __init__(self, prog: str, everything: bool = False):
        super().__init__(prog)
        self.everything, self.hidden = everything, 0
        self.needed: list[argparse.Action] = []

    def shows(self, action) -> bool:
        rare = isinstance(action.help, Rare) and not action.required and action not in self.needed
        return self.everything or not rare

    def add_usage(self, usage, actions, groups, prefix=None):
        self.needed = [one for group in groups if group.required for one in group._group_actions]
        # argparse cannot write the usage of a group of which a part is hidden
        groups = [group for group in groups if all(map(self.shows, group._group_actions))]
        super().add_usage(usage, list(filter(self.shows, actions)), groups, prefix)

    def add_text(self, text):
        if self.everything or not isinstance(text, Rare):
            super().add_text(text)

    def add_argument(self, action):
        if self.shows(action):
            super().add_argument(action)
        else:
            self.hidden += 1

    def _fill_text(self, text, width, indent):
        fill, most = super()._fill_text, WIDTH if "\n" in text else width
        return "\n".join(
            line if len(line) <= most else fill(line, width, indent) for line in text.split("\n")
        )


class FullHelp(argparse.Action):
    """The option --help-all."""

    def __init__(self, option_strings, dest, **more):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **more)

    def __call__(self, parser, namespace, values, option_string=None):
        parser.shows_all = True
        parser.print_help()
        parser.exit()


class HelpParser(argparse.ArgumentParser):
    """A parser with `examples`, command lines that end its help. Options have whole names."""

    shows_all = False
    examples: tuple[str, ...] = ()

    def __init__(self, *args, **more):
        super().__init__(*args, allow_abbrev=False, **more)

    def _get_formatter(self):
        self.formatter = HelpText(self.prog, self.shows_all)
        return self.formatter

    def format_help(self) -> str:
        """Return the help, with the number of options that it leaves out, and examples."""
        text, hidden = super().format_help(), self.formatter.hidden
        if hidden:
            text += f"\n{hidden} more option{'s' * (hidden > 1)}: {self.prog} --help-all\n"
        examples = [line for line in self.examples if line.startswith(f"{self.prog} ")]
        return text + "\n".join(["\nexamples:", *(f"  {x}" for x in examples), ""]) * bool(examples)

    def parse_known_args(self, args=None, namespace=None):
        """Parse as argparse does; what no option takes is wrong usage of this very parser."""
        args = sys.argv[1:] if args is None else list(args)
        self.refuse_unknown(args)
        namespace, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return namespace, rest

    def refuse_gone(self, name: str) -> None:
        """End in one line that says what to do, if `name` was a verb, an action or an option."""
        verb = [*self.prog.split(), ""][1]
        for verbs, names, remedy in GONE:
            if verb in (verbs.split() or [""]) and name in names.split():
                option = name.strip("-").replace("-", "_")
                self.exit(WRONG_USAGE, f"{self.prog}: {name} is gone; {remedy.format(option)}\n")

    def refuse_unknown(self, words: Iterable[str]) -> None:
        """End with an error at a word like an option that is none, up to an action's name."""
        nested = [one for one in self._actions if isinstance(one, argparse._SubParsersAction)]
        for word in words:
            if word == "--" or any(word in one.choices for one in nested):
                return
            name = word.partition("=")[0]
            if re.fullmatch(r"--?[a-zA-Z][\w-]*", name) and name not in self._option_string_actions:
                self.refuse_gone(name)
                self.error(f"no option {name}{suggest(name, self._option_string_actions)}")

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:
            self.refuse_gone(value)
            near = suggest(value, action.choices) if not action.option_strings else ""
            names = ", ".join(map(str, action.choices))
            raise argparse.ArgumentError(action, f"{value!r} is none of {names}{near}")


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the question whether something known like a wrong word was meant, if there is."""
    bare = {name.strip("-"): name for name in known}
    near = [bare[name] for name in difflib.get_close_matches(word.strip("-"), bare, 2)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
