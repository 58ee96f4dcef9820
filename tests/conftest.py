"""What the tests of the neural wing share: a tiny vocabulary, tiny corpora, tiny models."""

import signal
import threading
from shlex import split

import hypothesis
import pytest
from toys import OBJECTIVE, sentences, settings

from lmtools.base.doors import find_doors

# what tests a door elsewhere than in tests/unit/DOOR, left out where the door is not there
OF_DOORS = {
    "bridges": ("interop/test_export_ngram.py",),
    "decode": ("interop/test_recognisers.py", "unit/verbs/test_examples.py"),
    "networks": (
        *("interop/test_rover.py", "recipe/test_networks.py"),
        "unit/report/rescoring/test_confidences.py",
    ),
    "phrases": ("unit/report/rescoring/test_phrases.py",),
    "serve": ("unit/verbs/test_examples.py",),
    "transcribe": ("unit/verbs/test_examples.py", "interop/test_transcribe.py"),
    "vectors": tuple(
        f"recipe/test_{name}.py" for name in ("make_tasks", "run_tasks", "tasks", "word_vectors")
    ),
}
collect_ignore = [
    path for door, paths in OF_DOORS.items() if door not in find_doors() for path in paths
]

# A shell has what it starts in the background ignore Ctrl-C, and so would what tests start.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, however slow the machine; new ones with
# --hypothesis-profile=default and in tests/fuzz.py.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.load_profile("fixed")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A directory with text, a word vocabulary (sw), train.bin and valid.bin."""
    from lmtools.cli import main

    root = tmp_path_factory.mktemp("tiny")
    for name, count, seed in (("train", 300, 1), ("valid", 40, 2)):
        (root / f"{name}.txt").write_text("\n".join(sentences(count, seed)) + "\n")
    command = f"subword --text {root}/train.txt --type word --vocab-size 100 --out {root}/sw"
    assert main(split(command)) == 0
    for name in ("train", "valid"):
        command = f"corpus --text {root}/{name}.txt --subword {root}/sw --out {root}/{name}.bin"
        assert main(split(command)) == 0
    return root


@pytest.fixture(scope="session")
def trained(tiny):
    """Model directories of one tiny trained model a family: {"causal": path, ...}."""
    from lmtools.train import train

    for model in OBJECTIVE:
        train(settings(model), tiny / "train.bin", tiny / "valid.bin", tiny / "lm" / model, "cpu")
    return {model: tiny / "lm" / model for model in OBJECTIVE}
