"""The notebook with its saved outputs, as Markdown."""

import json
from collections.abc import Iterator
from pathlib import Path


def write_notebook(path: Path) -> str:
    """Return the cells as they follow each other, without the title."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in show_cell(cell)).partition("\n")[2]


def show_cell(cell: dict) -> Iterator[str]:
    """Yield the text of a cell, or its code and what that gave."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        if "text" in output:
            yield f"```text\n{''.join(output['text']).rstrip()}\n```"
        elif image := output.get("data", {}).get("image/png"):
            yield f'<img alt="" src="data:image/png;base64,{"".join(image.split())}">'
