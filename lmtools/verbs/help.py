"""What --help shows: the options that most users need; --help-all shows the rare ones too."""

import argparse

WIDTH = 100


class Rare(str):
    """Help of an option, or description of a group, that --help leaves to --help-all; a required
    option is shown by both.
    """


class HelpText(argparse.HelpFormatter):
    """Wraps long lines alone: lists of formats have lines of their own, up to WIDTH."""

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
        """Print the help with every option, and exit."""
        parser.shows_all = True
        parser.print_help()
        parser.exit()


class HelpParser(argparse.ArgumentParser):
    """A parser whose help leaves out rare options, and counts them in its last line. One that shows
    help has hidden them for good: it ends there.
    """

    shows_all = False

    def format_usage(self) -> str:
        """Return the usage, without rare options."""
        self.hide_rare()
        return super().format_usage()

    def format_help(self) -> str:
        """Return the help, without rare options unless all are asked for."""
        hidden = 0 if self.shows_all else self.hide_rare()
        more = f"{hidden} more option{'s' * (hidden > 1)}: {self.prog} --help-all"
        return super().format_help() + (f"\n{more}\n" if hidden else "")

    def hide_rare(self) -> int:
        """Hide rare options; return their number."""
        groups = self._mutually_exclusive_groups
        needed = [action for group in groups if group.required for action in group._group_actions]
        rare = [
            action
            for action in self._actions
            if isinstance(action.help, Rare) and not action.required and action not in needed
        ]
        for action in rare:
            action.help = argparse.SUPPRESS
        for titled in self._action_groups:
            if isinstance(titled.description, Rare):
                titled.description = None
        # argparse cannot write the usage of a group of which a part is hidden
        self._mutually_exclusive_groups = [
            group for group in groups if not any(action in rare for action in group._group_actions)
        ]
        return len(rare)
