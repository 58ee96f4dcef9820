"""The one exception that a user's mistake raises."""


class UserError(Exception):
    """The user's input is wrong; the message is one line `path:line: cause; remedy`.

    The command line prints it on standard error and exits with status 1; nothing is half-written.
    """
