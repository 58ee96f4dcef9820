import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "utils/detokenise.py"


def detokenised(text: bytes, *options):
    """What the script makes of standard input."""
    return subprocess.run([sys.executable, SCRIPT, *options], input=text, capture_output=True)


def test_a_file_line_by_line():
    """Every line stays one, empty ones included, and Unicode's other line separators end none."""
    done = detokenised("a , b\n\nc&apos; est\u2028l &quot; é &quot; .\n".encode(), "fr")
    assert done.stdout.decode() == 'a, b\n\nc\'est l "é".\n'


def test_mistakes_are_one_line():
    for text, language, cause in (
        (b"a\n", "French", b"not a language code"),
        (b"\xff\n", "fr", b"-:1: not UTF-8"),
    ):
        done = detokenised(text, language)
        assert done.returncode == 1 and cause in done.stderr and done.stderr.count(b"\n") == 1
