#!/usr/bin/env python3
"""mse_table.py LM PPL OUT.md: the table of run_mse.sh, a row each model LM/NAME that has a
PPL/NAME/test.json of `lmtools ppl --out`: where it started, learning rate, best validation loss in
nats, test perplexity and how far that is above the CE model's.
"""

import sys
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import exit_with_message
from lmtools.base.seal import read_json
from lmtools.models.checkpoint import read_settings

REFERENCE = "softmax"
HEAD = "| criterion | rivals | starts from | learning rate | test perplexity | to CE |"


def main(models: Path, perplexities: Path, out: Path) -> None:
    """Write the table and print it."""
    found = {
        path.parent.name: read_json(path)["word_ppl"]
        for path in sorted(perplexities.glob("*/test.json"))
    }
    lines = [HEAD, "|---|---:|---|---:|---:|---:|"]
    for name, value in sorted(found.items(), key=lambda item: item[1]):
        settings = read_settings(models / name)[0]
        above = "" if name == REFERENCE else f"{value / found[REFERENCE] - 1:+.1%}"
        start = "NCE" if name.startswith("nce-") else ""
        rival = getattr(settings.output_layer, "rival", None)  # of full criteria but CE
        rate = f"{settings.optim.lr:g}"
        cells = (
            settings.criterion,
            "" if rival is None else f"{rival:g}",
            start,
            rate,
            f"{value:.2f}",
            above,
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    text = "\n".join(lines) + "\n"
    with atomic_text(out) as stream:
        stream.write(text)
    print(text, end="")


if __name__ == "__main__":
    with exit_with_message():
        main(*map(Path, sys.argv[1:]))
