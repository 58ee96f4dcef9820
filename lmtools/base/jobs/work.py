"""Work on many items, as it goes to worker processes and to tasks of a cluster."""

from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial

from lmtools.base.context import LOCAL, SETTINGS, Context, current


@dataclass(frozen=True)
class Work:
    """Function `act` of an item, to which what `load()` returns, called once a process, comes first
    where there is one. `reads`: files that it reads by name; `context`: settings of the call that
    the work is for; `forks`: whether processes of this machine may be forks of this one.
    """

    act: Callable
    load: Callable | None = None
    reads: tuple = ()
    context: Context = field(default_factory=current)
    forks: bool = False

    def bind(self) -> Callable:
        """Return the function of an item alone."""
        return partial(self.act, self.load()) if self.load else self.act

    def begin(self) -> Callable:
        """Return `bind` under the settings, for another process: there its own pieces of work are
        processes, whatever the call's are.
        """
        here = copy_context()
        here.run(SETTINGS.set, replace(self.context, cmd=LOCAL))
        return partial(here.run, here.run(self.bind))
