"""Attacks lmtools as the modules beside this one say, prints what came through with a command that
repeats it, and a table.

`python tests/trust/run.py` is the short campaign of `make test`, `--long` that of `make trust`;
`--only damage` one attack, `--case NAME` one case of it. What a case does is a function of (attack,
seed, case). Attacks take turns, each as much of the time as the others.
"""

import argparse
import collections
import contextlib
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
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


def attacked(name: str, case: common.Case, seed: int, keep: bool) -> dict:
    """How one case ended: outcome (ok, skipped, or one of OUTCOMES), detail, trials, seconds."""
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
    if not keep:
        shutil.rmtree(home.parent, ignore_errors=True)
    return {
        "attack": name,
        "case": case.name,
        "seed": seed,
        "outcome": outcome,
        "detail": detail,
        "trials": trials,
        "seconds": round(time.monotonic() - begin, 2),
    }


def chosen(name: str, options):
    """The cases of an attack that the options allow."""
    for case in importlib.import_module(f"trust.{name}").cases(options.size, options.seed):
        if not options.case or case.name in options.case:
            yield case


def share(names: list[str], options, begun, spent, queue) -> None:
    """Cases in this process, each the next one that no other has begun of the attack that has had
    the least time, so that all are reached however soon the campaign ends: `begun` cases and
    seconds `spent` are in the order of `names`. Results go into the queue, None at the end.
    """
    # so that what a case started is ended
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    left = {place: enumerate(chosen(name, options)) for place, name in enumerate(names)}
    try:
        while left and time.time() < options.end:
            with begun.get_lock():
                place = min(left, key=lambda place: spent[place])
                wanted = begun[place]
                begun[place] += 1
            case = next((case for number, case in left[place] if number == wanted), None)
            if case is None:
                del left[place]
                continue
            begin = time.monotonic()
            queue.put(attacked(names[place], case, options.seed, options.keep))
            with begun.get_lock():
                spent[place] += time.monotonic() - begin
    finally:
        queue.put(None)


def results(names: list[str], options):
    """The results of all cases as they come, of `options.jobs` processes."""
    common.warm()
    World.get()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    begun, spent = context.Array("l", len(names)), context.Array("d", len(names))
    processes = [
        context.Process(target=share, args=(names, options, begun, spent, queue))
        for _ in range(options.jobs)
    ]
    for process in processes:
        process.start()
    left = options.jobs
    try:
        while left:
            result = queue.get()
            left -= result is None
            if result:
                yield result
    finally:
        if left:
            for process in processes:
                process.terminate()
        for process in processes:
            process.join()


def command(result: dict, size: str) -> str:
    """What repeats a case."""
    size = "" if size == "short" else f" --{size}"
    return (
        f"python tests/trust/run.py --only {result['attack']} --seed {result['seed']}{size} --case"
        f" {result['case']}"
    )


def table(found: list[dict]) -> str:
    """Trials and outcomes of each attack and kind, in Markdown."""
    rows = collections.defaultdict(collections.Counter)
    for result in sorted(found, key=lambda result: [*ATTACKS].index(result["attack"])):
        kind = result["case"].rstrip("0123456789").rstrip("-") or result["case"]
        row = rows[result["attack"], kind]
        row["trials"] += result["trials"]
        row["cases"] += 1
        row[result["outcome"]] += 1
    lines = [
        "| attack | kind | cases | trials | ok | what came through |",
        "|---|---|---|---|---|---|",
    ]
    for (attack, kind), row in rows.items():
        wrong = ", ".join(
            f"{count} {name}"
            for name, count in row.items()
            if name not in ("cases", "trials", "ok")
        )
        lines.append(
            f"| {attack} | {kind} | {row['cases']} | {row['trials']} | {row['ok']} |"
            f" {wrong or '-'} |"
        )
    return "\n".join(lines)


def write_cases(found: list[dict], options: argparse.Namespace) -> None:
    """Write every case so far and its outcome, so that a campaign may be ended at any time."""
    if options.json:
        tree = {"seed": options.seed, "size": options.size, "cases": found}
        Path(options.json).write_text(json.dumps(tree, indent=1) + "\n")


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--long", dest="size", action="store_const", const="long", help="hours on two cores"
    )
    size.add_argument(
        "--medium", dest="size", action="store_const", const="medium", help="some ten minutes"
    )
    size.add_argument(
        "--short", dest="size", action="store_const", const="short", help="a minute (the default)"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=1e6,
        help="begin no case after so long, which the attacks share",
    )
    parser.add_argument(
        "--patience", default="1", metavar="X", help="limits of time, times X: the machine is busy"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", action="append", choices=sorted(ATTACKS), help="this attack (may be repeated)"
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=sorted(ATTACKS),
        help="all but this attack",
    )
    parser.add_argument(
        "--case", action="append", help="only the case of this name (may be repeated)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="attack with so many processes")
    parser.add_argument("--json", help="write every case and its outcome to this file")
    parser.add_argument(
        "--base", help="work below this directory and keep it (default: a temporary one)"
    )
    parser.add_argument("--keep", action="store_true", help="keep what each case wrote")
    options = parser.parse_args()
    options.size = options.size or "short"
    options.end = time.time() + 60 * options.minutes
    return options


def main() -> int:
    """Attack; 0 if nothing came through."""
    options = parsed()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    names = [
        name
        for name in ATTACKS
        if name in (options.only or ATTACKS) and name not in options.without
    ]
    with contextlib.ExitStack() as stack:
        World.base = Path(
            options.base
            or stack.enter_context(
                tempfile.TemporaryDirectory(prefix="trust.", ignore_cleanup_errors=True)
            )
        )
        World.base.mkdir(parents=True, exist_ok=True)
        os.environ[common.SLOWER] = options.patience
        begin, found = time.monotonic(), []
        for result in results(names, options):
            found.append(result)
            write_cases(found, options)
            if result["outcome"] not in ("ok", "skipped"):
                print(
                    f"{result['outcome']}: {command(result, options.size)}\n    "
                    + result["detail"].strip().replace("\n", "\n    "),
                    flush=True,
                )
        print(table(found))
        wrong = sum(result["outcome"] not in ("ok", "skipped") for result in found)
        for reason in sorted(
            {
                f"{result['attack']}: {result['detail']}"
                for result in found
                if result["outcome"] == "skipped"
            }
        ):
            print(f"skipped: {reason}")
        for name in names:
            done = sum(result["attack"] == name for result in found)
            if (all_of := sum(1 for _ in chosen(name, options))) > done:
                print(f"for want of time: {done} of {all_of} cases of {name}")
        trials, seconds = sum(result["trials"] for result in found), time.monotonic() - begin
        cpu = sum(os.times()[:4])
        print(
            f"{trials} attacks in {len(found)} cases, {wrong} came through; {seconds:.0f} s,"
            f" {cpu:.0f} s of processor time"
        )
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
