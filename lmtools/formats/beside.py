"""What recipes of Kaldi and ESPnet keep beside N-best lists: the lists inside a directory of a
decoding, and the references.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.formats import FORMATS
from lmtools.formats.lists import pair_ids
from lmtools.formats.registry import list_children
from lmtools.formats.texts import read_texts

ESPNET = "espnet2"
NONE = "none"
# Of files in the directory of the lists or above it; ESPnet's `text` there is what it recognised
REFERENCES = ("text", "scoring_kaldi/test_filt.txt")
OF_ESPNET = ("score_wer/ref.trn",)


def find_lists(path, form: str | None = None) -> tuple[str, str]:
    """Return where the lists are that `path` means, and their format: a directory of a decoding
    may have them in one that is called `nbest..`. UserError where nothing is recognised.
    """
    if form:
        return str(path), form
    try:
        return str(path), FORMATS.detect(path)
    except UserError:
        folders = list_children(path) if Path(path).is_dir() else []
        folders = [child for child in folders if child.is_dir() and child.name[:5] == "nbest"]
        inside = [(str(child), FORMATS.detect(child, NONE)) for child in folders]
        found = [(child, name) for child, name in inside if name != NONE]
        if len(found) != 1:
            raise
        return found[0]


def find_references(path, form: str, utts: Collection[str]) -> str | None:
    """Return the file beside the lists with a reference for each of `utts`, by `pair_ids`."""
    for file in list_places(Path(path), form):
        try:
            if file.is_file() and pair_ids(utts, read_texts(file)):
                return str(file)
        except UserError:  # of a file that nobody asked for
            continue
    return None


def list_places(path: Path, form: str) -> Iterator[Path]:
    """Yield where references may be: in the directory of the lists and two above it, and in
    `data/SET/text` of the recipe whose `exp` holds them, sets named in `path` first.
    """
    folder = path if path.is_dir() else path.parent
    for place in (folder, *folder.parents[:2]) if path.is_dir() else [folder]:
        yield from (place / name for name in (OF_ESPNET if form == ESPNET else REFERENCES))
    for place in folder.parents:
        if place.name == "exp":
            texts = sorted(place.parent.glob("data/*/text"))
            yield from sorted(texts, key=lambda text: text.parent.name not in str(folder))
