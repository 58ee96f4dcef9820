#!/usr/bin/env python3
"""within.py lms RATE BATCH: the models that call 3 trains, by the rate that bench.py rate measured.

within.py train RATE BATCH SECONDS [--again KEY=VALUE --check STEP --most LOSS] OPTION... -- SETTING
...: `lmtools train OPTION... SETTING...` with as many steps as end in SECONDS by that rate. Where
the training loss at STEP is above LOSS, it starts again with KEY=VALUE and the steps that are left
time for. OUT.done says what was trained; nothing is there of a training that did not end.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).absolute().parents[1]))

from measures.rate import count_steps, slowest

LEAST = 150_000  # tokens a second of each of three trainings; below it uniLM is left out


def main(argv: list[str]) -> int:
    """Plan, or train; the exit status."""
    own, settings = (
        (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    )
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["lms", "train"])
    parser.add_argument("rate", type=Path)
    parser.add_argument("batch", type=int)
    parser.add_argument("seconds", type=float, nargs="?", default=0.0)
    parser.add_argument("--again")
    parser.add_argument("--check", type=int, default=0)
    parser.add_argument("--most", type=float, default=0.0)
    args, options = parser.parse_known_args(own)
    figures = json.loads(args.rate.read_text())
    together = max(row["together"] for row in figures["rows"])
    if args.what == "lms":
        print("tta masked" + " causal" * (slowest(figures, together, args.batch) >= LEAST))
        return 0
    begin, again = time.monotonic(), [args.again] if args.again else []
    for extra in ([], again) if again else ([],):
        left = args.seconds - (time.monotonic() - begin)
        steps = count_steps(figures, together, args.batch, left)
        if steps < 1:
            print(f"no step ends in {left:.0f} s")
            return 1
        command = ["lmtools", "train", *options, *settings, f"steps={steps}", *extra]
        out = Path(options[options.index("--out") + 1])
        status = run(command, out, None if extra or not again else (args.check, args.most))
        if status is not None:
            break
        print(f"{out.name}: the loss is above {args.most}; again with {args.again}", flush=True)
    if status == 0:
        done = {
            "steps": steps,
            "settings": [*settings, *extra],
            "seconds": time.monotonic() - begin,
        }
        out.with_suffix(".done").write_text(json.dumps(done))
    return status


def run(command: list[str], out: Path, check: tuple[int, float] | None) -> int | None:
    """Run a training to its end; its status, None where it was ended at the check."""
    process = subprocess.Popen(command)
    while check and process.poll() is None:
        if loss := loss_at(out / "metrics.jsonl", check[0]):
            if loss > check[1]:
                process.terminate()
                process.wait()
                return None
            break
        time.sleep(0.2)
    return process.wait()


def loss_at(log: Path, step: int) -> float | None:
    """Return the training loss that was logged first at `step` or later."""
    lines = log.read_text().splitlines() if log.exists() else []
    for line in lines:
        if line.endswith("}") and "train_loss" in (row := json.loads(line)) and row["step"] >= step:
            return row["train_loss"]
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
