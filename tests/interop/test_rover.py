"""ROVER against NIST's program (Debian: sctk), on random outputs of two to five systems.

NIST's cuts recordings at silences that all systems share before it aligns; here all systems'
words fill the same second, so that there are none.
"""

import random
import shutil
import subprocess

import pytest

from lmtools.networks.rover import Token, Vote, align_systems, elect

ROVER = shutil.which("rover") or shutil.which("rover", path="/usr/lib/sctk/bin")
pytestmark = pytest.mark.skipif(not ROVER, reason="rover is not installed (Debian: sctk)")
NAMES = {"freq": "meth1", "average": "meth1", "maximum": "maxconf", "share": "avgconf"}


def outputs(rng):
    """Outputs of several systems with errors of every kind, at confidences of two digits."""
    vocabulary = [f"w{i}" for i in range(rng.choice([2, 3, 6, 30]))]
    ref = rng.choices(vocabulary, k=rng.randint(1, 14))
    systems = []
    for _ in range(rng.randint(2, 5)):
        hyp = []
        for word in ref:
            kind = rng.random()
            hyp += [rng.choice(vocabulary) if kind < 0.35 else word] * (kind > 0.15)
            hyp += [rng.choice(vocabulary)] * (kind > 0.9)
        hyp = hyp or [rng.choice(vocabulary)]
        times = [(place / len(hyp), (place + 1) / len(hyp)) for place in range(len(hyp))]
        pairs = zip(hyp, times, strict=True)
        systems.append([Token(word, round(rng.uniform(0.01, 1), 2), time) for word, time in pairs])
    return systems


def nist(folder, systems, vote):
    """Words and confidences that NIST's program writes."""
    files = []
    for number, tokens in enumerate(systems):
        rows = [
            f"u 1 {start:.6f} {end - start:.6f} {token.word} {token.confidence:.2f}\n"
            for token in tokens
            for start, end in [token.time]
        ]
        (folder / f"{number}.ctm").write_text("".join(rows))
        files += ["-h", folder / f"{number}.ctm", "ctm"]
    method = ["-m", NAMES[vote.method], "-a", str(vote.alpha), "-c", str(vote.null)]
    command = [ROVER, *files, "-o", folder / "out", *method, "-s", "-f", "0"]
    subprocess.run(command, check=True, capture_output=True)
    rows = [line.split() for line in (folder / "out").read_text().splitlines()]
    return [(row[4], row[5]) for row in rows]


@pytest.mark.parametrize("seed", range(40))
def test_equal(tmp_path, seed):
    rng = random.Random(seed)
    systems = outputs(rng)
    for method in NAMES:
        vote = Vote(method)
        if method != "freq":
            vote = Vote(method, rng.choice([0, 0.3, 0.5, 0.8]), rng.choice([0, 0.2, 0.5, 0.7]))
        winners = [token for token in elect(align_systems(systems), vote) if token.word]
        ours = [(token.word, f"{token.confidence:.6f}") for token in winners]
        assert ours == nist(tmp_path, systems, vote), (method, systems)
