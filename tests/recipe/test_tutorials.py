"""The tutorials' commands, run as they stand there, print what the pages show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("tutorial-*.md"))
CUT = " ..."  # ends a line of which the page shows the beginning


def read_steps(page: Path) -> list[tuple[str, str]]:
    """The commands of each block and what they print ("" where the page shows nothing)."""
    return re.findall(r"```bash\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_print_what_the_page_shows(page, tmp_path):
    for name in ("egs", "utils"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "LMTOOLS_CACHE": "none", "OMP_NUM_THREADS": "1"}
    steps = read_steps(page)
    assert sum(bool(output) for _, output in steps) >= 3
    for commands, output in steps:
        done = subprocess.run(
            ["bash", "-eu", "-c", f"exec 2>&1\n{commands}"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        printed = iter(done.stdout.splitlines())
        for line in output.splitlines():
            begin, cut, _ = line.partition(CUT)
            assert any(one.startswith(begin) if cut else one == line for one in printed), (
                f"{line}\n{done.stdout}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_first_lines_say_what_the_last_command_printed(page):
    """The two error rates of the beginning are printed further down."""
    text = page.read_text()
    first = re.findall(r"\b\d+\.\d\d%", text.partition("\n\n")[2].partition("\n\n")[0])
    shown = "".join(output for _, output in read_steps(page))
    assert len(first) == 2 and set(first) <= set(re.findall(r"\b\d+\.\d\d%", shown))
