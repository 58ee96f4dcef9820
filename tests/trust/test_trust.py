"""The short campaign: every attack beside this file, once or a few times. `make trust` is the long
one.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "run.py"
ATTACKS = sorted(
    {path.stem for path in RUN.parent.glob("*.py")} - {"common", "world", "run", "test_trust"}
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Every case's outcome, by attack."""
    out = tmp_path_factory.mktemp("trust") / "outcomes.json"
    command = [sys.executable, str(RUN), "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False)
    assert out.exists(), f"{done.stdout}\n{done.stderr}"
    cases = json.loads(out.read_text())["cases"]
    return {attack: [case for case in cases if case["attack"] == attack] for attack in ATTACKS}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_comes_through(outcomes, attack):
    assert outcomes[attack], "the attack is not run"
    through = [case for case in outcomes[attack] if case["outcome"] not in ("ok", "skipped")]
    again = "; python tests/trust/run.py --only {attack} --case {case}"
    assert not through, "\n".join(
        f"{case['outcome']}: {case['detail']}{again.format(**case)}" for case in through
    )
    if all(case["outcome"] == "skipped" for case in outcomes[attack]):
        pytest.skip(outcomes[attack][0]["detail"])
