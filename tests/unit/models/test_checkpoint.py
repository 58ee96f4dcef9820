"""What goes wrong when a model's files are written and read."""

import subprocess
import sys

import pytest
import torch
from toys import settings

from lmtools.base.atomic import ASIDE
from lmtools.base.errors import UserError
from lmtools.base.seal import Damaged
from lmtools.models import checkpoint
from lmtools.models.checkpoint import load_checked, prepare_directory, save_tensors
from lmtools.text import Normaliser
from lmtools.text.subword import load_subword, train
from lmtools.train.directory import set_aside

SCRIPT = """
import resource, signal, sys
import torch
from lmtools.models.checkpoint import save_tensors
from lmtools.base.errors import UserError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try: save_tensors({"a": torch.zeros(10**5)}, sys.argv[1])
except UserError as error: print(error)
"""


def test_a_full_disk_is_said_in_one_line(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True)
    assert done.stdout.startswith(f"{path}: cannot write: ") and done.stdout.count("\n") == 1, done
    assert "; raise the limit of file sizes" in done.stdout
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_link_in_a_models_directory_is_replaced(tmp_path):
    path = tmp_path / "model.safetensors"
    (tmp_path / "kept").write_bytes(b"kept")
    path.symlink_to("kept")
    save_tensors({"a": torch.zeros(3)}, path)
    assert not path.is_symlink() and (tmp_path / "kept").read_bytes() == b"kept"


def test_links_in_a_directory_that_a_training_makes_or_sets_aside(tmp_path):
    """What they lead to stays as it is."""
    other = train("word", ["a b"], None, Normaliser(), tmp_path / "other")
    new = train("word", ["c d"], None, Normaliser(), tmp_path / "new")
    (tmp_path / "lm").mkdir()
    (tmp_path / "lm/subword").symlink_to("../other")
    (tmp_path / "lm" / ASIDE).symlink_to("../kept")
    (tmp_path / "kept").write_text("kept")
    prepare_directory(tmp_path / "lm", settings("causal"), new)
    set_aside(tmp_path / "lm", "for a test")
    assert load_subword(tmp_path / "other").hash == other.hash
    assert load_subword(tmp_path / "lm.1/subword").hash == new.hash
    assert (tmp_path / "kept").read_text() == "kept"
    assert (tmp_path / "lm.1" / ASIDE).read_text() == "for a test\n"


def test_what_may_not_be_read_is_not_damaged(tmp_path, monkeypatch):
    """Training sets a damaged directory aside, which a missing permission is no reason for."""
    path = tmp_path / "model.safetensors"
    save_tensors({"a": torch.zeros(3)}, path)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoint, "open", refuse, raising=False)
    with pytest.raises(UserError, match="cannot read: Permission denied; check the perm") as caught:
        load_checked(path)
    assert not isinstance(caught.value, Damaged)
    monkeypatch.undo()
    path.write_bytes(b"")
    with pytest.raises(Damaged):
        load_checked(path)
