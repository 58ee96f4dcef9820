"""Attacks lmtools as the modules beside this one say, prints what came through with a command that
repeats it, and a table.

`python tests/trust/run.py` is the short campaign of `make test`, `--long` that of `make trust`;
`--only damage` one attack, `--case NAME` one case of it. What a case does is a function of (attack,
seed, case). Attacks take turns: whenever the campaign ends, each has had its share.
"""

import argparse
import collections
import importlib
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from trust import common  # noqa: E402
from trust.world import World  # noqa: E402

ATTACKS = {
    "damage": "verbs on damaged artifacts: bits, blocks, lengths, other files' content",
    "columns": "scores of other lists, models, penalties",
    "hostile": "data directories, names and archives that act",
    "planted": "parts, journals, caches, links and modules that come along with data",
    "bombs": "small files that become large, long lines, deep nesting, claimed sizes",
    "disk": "no room for a verb's output",
    "races": "two writers of one output, several readers and writers of one cache",
    "kills": "SIGKILL of verbs that go on where they were, and the same command again",
    "recipes": "SIGKILL of whole recipes at random moments, and the same command again",
    "readers": "damaged input for every reader of formats (tests/fuzz.py)",
}
FINE = ("ok", "skipped")
TASKS: list[tuple[str, common.Case]] = []  # of this campaign, in their turns; forks have them


def list_tasks(options: argparse.Namespace) -> list[tuple[str, common.Case]]:
    """The cases that the options allow, with their attacks, each attack's spread evenly."""
    turns = []
    for name in options.only or ATTACKS:
        cases = importlib.import_module(f"trust.{name}").cases(options.size, options.seed)
        chosen = [case for case in cases if not options.case or case.name in options.case]
        turns += [((n + 0.5) / len(chosen), (name, case)) for n, case in enumerate(chosen)]
    return [task for _, task in sorted(turns, key=lambda turn: turn[0])]


def attack(number: int, options: argparse.Namespace) -> dict | None:
    """How a task ended: ok, skipped, or one of OUTCOMES; None when time is over."""
    if time.time() > options.end:
        return None
    name, case = TASKS[number]
    home = Path(tempfile.mkdtemp(dir=World.base, prefix=f"{name}."), "case")
    home.mkdir()
    begin, outcome, detail, trials = time.monotonic(), "ok", "", 1
    try:
        trials = case.check(home) or 1
    except common.Wrong as wrong:
        outcome, detail = wrong.outcome, wrong.detail
    except common.Skipped as reason:
        outcome, detail, trials = "skipped", str(reason), 0
    except Exception:
        outcome, detail = "attack failed", traceback.format_exc(limit=-4)
    if not options.keep:
        shutil.rmtree(home.parent, ignore_errors=True)
    ended = {"outcome": outcome, "detail": detail, "trials": trials}
    seconds = round(time.monotonic() - begin, 2)
    return {"attack": name, "case": case.name, "seed": options.seed} | ended | {"seconds": seconds}


def leave(number: int = 0, frame=None) -> None:
    """End as if the work were over, so that what a case started is ended."""
    sys.exit(1)


def campaign(options: argparse.Namespace):
    """The results of all cases, by `options.jobs` processes, which may have children."""
    common.warm()
    World.get()
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(options.jobs, fork, signal.signal, (signal.SIGTERM, leave)) as pool:
        yield from filter(None, pool.map(attack, range(len(TASKS)), itertools.repeat(options)))


def show(result: dict, size: str) -> str:
    """What came through, with the command that repeats it."""
    size = "" if size == "short" else f" --{size}"
    return (
        f"{result['outcome']}: python tests/trust/run.py --only {result['attack']} --seed"
        f" {result['seed']}{size} --case {result['case']}\n    "
    ) + result["detail"].strip().replace("\n", "\n    ")


def table(found: list[dict]) -> str:
    """Trials and outcomes of each attack and kind, in Markdown."""
    rows = collections.defaultdict(collections.Counter)
    for result in sorted(found, key=lambda result: [*ATTACKS].index(result["attack"])):
        kind = result["case"].rstrip("0123456789").rstrip("-") or result["case"]
        row = rows[result["attack"], kind]
        row.update({"trials": result["trials"], "cases": 1, result["outcome"]: 1})
    lines = [
        "| attack | kind | cases | trials | ok | what came through |",
        "|---|---|---|---|---|---|",
    ]
    for (attack, kind), row in rows.items():
        cells = [attack, kind, *(row.pop(name, 0) for name in ("cases", "trials", "ok"))]
        cells.append(", ".join(f"{count} {name}" for name, count in row.items()) or "-")
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", choices=sorted(ATTACKS), help="this attack (may be repeated)"
    )
    for size, text in {"long": "hours on two cores", "medium": "some ten minutes"}.items():
        parser.add_argument(
            f"--{size}", dest="size", action="store_const", const=size, default="short", help=text
        )
    for name, kind, default, text in (
        ("--minutes", float, 1e6, "begin no case after so long"),
        ("--patience", str, "1", "limits of time, times so much: the machine is busy"),
        ("--seed", int, 0, None),
        ("--jobs", int, 1, "attack with so many processes"),
        ("--json", Path, None, "write every case and its outcome to this file"),
        ("--base", Path, None, "work below this directory and keep it (default: a temporary one)"),
    ):
        parser.add_argument(name, type=kind, default=default, help=text)
    parser.add_argument("--case", action="append", help="only the case of this name, or these")
    parser.add_argument("--keep", action="store_true", help="keep what each case wrote")
    options = parser.parse_args()
    options.end = time.time() + 60 * options.minutes
    return options


def main() -> int:
    """Attack; 0 if nothing came through."""
    options = parsed()
    signal.signal(signal.SIGTERM, leave)
    TASKS[:] = list_tasks(options)
    temporary = tempfile.TemporaryDirectory(prefix="trust.", ignore_cleanup_errors=True)
    with temporary as place:
        World.base = options.base or Path(place)
        World.base.mkdir(parents=True, exist_ok=True)
        os.environ[common.SLOWER] = options.patience
        begin, found = time.monotonic(), []
        for result in campaign(options):
            found.append(result)
            if options.json:  # each time: a campaign may be ended at any moment
                tree = {"seed": options.seed, "size": options.size, "cases": found}
                options.json.write_text(json.dumps(tree, indent=1) + "\n")
            if result["outcome"] not in FINE:
                print(show(result, options.size), flush=True)
        print(table(found))
        wrong = sum(result["outcome"] not in FINE for result in found)
        skipped = [result for result in found if result["outcome"] == "skipped"]
        for line in sorted({f"skipped: {one['attack']}: {one['detail']}" for one in skipped}):
            print(line)
        if len(found) < len(TASKS):
            print(f"for want of time: {len(found)} of {len(TASKS)} cases")
        trials, seconds = sum(result["trials"] for result in found), time.monotonic() - begin
        print(
            f"{trials} attacks in {len(found)} cases, {wrong} came through; {seconds:.0f} s,"
            f" {sum(os.times()[:4]):.0f} s of processor time"
        )
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
