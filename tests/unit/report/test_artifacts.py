"""lmtools/report/artifacts.py: the manifests that a report speaks of."""

import json
from pathlib import Path

from lmtools.report.artifacts import read_stages


def write(home: Path, name: str, started: str, command: str) -> None:
    """The manifest of a stage."""
    path = home / f"stages/{name}.json"
    path.parent.mkdir(exist_ok=True)
    number = int(name.rpartition("-")[2])
    path.write_text(json.dumps({"stage": number, "started": started, "command": command}))


def test_stages_of_all_scripts_in_the_order_in_which_they_were_started(tmp_path):
    assert read_stages(tmp_path) == []
    for number in (3, 4, 10):
        write(tmp_path, str(number), f"2026-01-01T10:{number:02}", "./run.sh")
    write(tmp_path, "translators-4", "2026-01-01T11:00", "./run_translators.sh")
    write(tmp_path, "paper-4", "2026-01-01T11:01", "./run_paper.sh")
    (tmp_path / "stages/hashes.json").write_text("{}")
    found = [(one["stage"], one["command"]) for one in read_stages(tmp_path)]
    assert found == [
        *((number, "./run.sh") for number in (3, 4, 10)),
        ("translators-4", "./run_translators.sh"),
        ("paper-4", "./run_paper.sh"),
    ]
    write(tmp_path, "4", "2026-01-01T12:00", "./run.sh --pair fr-en")  # begun anew
    assert [one["stage"] for one in read_stages(tmp_path)] == [3, 10, "translators-4", "paper-4", 4]


def test_manifests_without_times_go_by_number(tmp_path):
    for number in (10, 2):
        write(tmp_path, str(number), "", "./run.sh")
    assert [one["stage"] for one in read_stages(tmp_path)] == [2, 10]
