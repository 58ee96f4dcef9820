#!/usr/bin/env python3
"""unknown.py HOME TASK DIR TEXT VECTORS...: the first figure of each of VECTORS, mean over seeds,
on the test sentences of TASK by the share of their words that TEXT, what the LMs read, lacks; a
table in Markdown. HOME is exp/tasks, which run_tasks.sh wrote, DIR the task's data.
"""

import sys
from pathlib import Path

import numpy as np
from report import RESULTS, load
from run import TASKS

from lmtools.base.errors import exit_with_message
from lmtools.text.blocks import read_text

SHARES = {
    "none": (0, 0),
    "below 10%": (0, 0.1),
    "10% to 20%": (0.1, 0.2),
    "20% and more": (0.2, 2),
}  # fmt: skip


def main(home: str, name: str, folder: str, text: str, *vectors: str) -> None:
    """Count and print."""
    task = TASKS[name]
    known = {word for row in read_text(text) for word in row[-1].split()}
    examples = task.read(task.find(Path(folder), "test"))
    lacking = np.array([np.mean([w not in known for w in e.sentences[0]]) for e in examples])
    print(f"| share of words that are unknown | sentences | {' | '.join(vectors)} |")
    print("|---" + "|---:" * (1 + len(vectors)) + "|")
    for title, (low, high) in SHARES.items():
        inside = lacking == 0 if high == 0 else (lacking > 0) & (low <= lacking) & (lacking < high)
        counts = [
            load(Path(home, RESULTS, name, vector)).counts[:, inside].sum(1).mean(0)
            for vector in vectors
        ]
        figures = (f"{float(task.score(vector)[0]):.2f}" for vector in counts)
        print(f"| {title} | {inside.sum()} | {' | '.join(figures)} |")
    print(f"\nOf an average sentence {100 * lacking.mean():.1f}% of the words are unknown.")


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
