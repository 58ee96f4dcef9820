"""Processor time and memory of `lmtools network build` on lists of random errors, one core:
`OMP_NUM_THREADS=1 python benchmarks/networks.py [LISTS [HYPOTHESES]]`.

Lists are written first; the command runs as a user runs it, on all lists and on a tenth of them.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS, VOCABULARY = 20, 2000


def write_lists(path: Path, lists: int, hyps: int) -> None:
    """Write lists whose hypotheses have one to six errors of a sentence of WORDS words."""
    rng = random.Random(1)
    vocabulary = [f"w{number}" for number in range(VOCABULARY)]
    with path.open("w") as out:
        for utt in range(lists):
            sentence = rng.choices(vocabulary, k=WORDS)
            confusable = rng.choices(vocabulary, k=8)
            rows = []
            for rank in range(hyps):
                words = list(sentence)
                for _ in range(rng.randint(1, 6)):
                    place, kind = rng.randrange(len(words)), rng.random()
                    if kind < 0.6:
                        words[place] = rng.choice(confusable)
                    elif kind < 0.8:
                        words.insert(place, rng.choice(confusable))
                    elif len(words) > 1:
                        del words[place]
                rows.append({"text": " ".join(words), "scores": {"am": -rank / 10}})
            out.write(json.dumps({"utt": f"u{utt}", "hyps": rows}) + "\n")


def measure(path: Path, out: Path) -> tuple[float, float]:
    """Processor seconds and MB at most of one run."""
    command = [sys.executable, "-m", "lmtools", "network", "build", "--nbest", path]
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True,"
        " stderr=subprocess.DEVNULL); used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        " print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"
    )
    words = [*command, "--out", out]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=True)
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def main(lists: int = 1000, hyps: int = 100) -> None:
    """Measure, and print a line for each number of lists."""
    with tempfile.TemporaryDirectory() as folder:
        for count in (max(lists // 10, 1), lists):
            path = Path(folder, f"{count}.jsonl")
            write_lists(path, count, hyps)
            seconds, memory = measure(path, Path(folder, "out.json"))
            print(f"{count} lists of {hyps}: {seconds:.1f} s, {memory:.0f} MB")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main(*map(int, sys.argv[1:]))
