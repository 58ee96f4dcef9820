"""Language models in the forms that other programs load; one file a form, and a name in FORMS.

A form is a function (directory of `lmtools train`, directory to write) -> what to say of it.
"""

from collections.abc import Callable

from lmtools.export.ct2 import write_ct2
from lmtools.export.huggingface import write_huggingface
from lmtools.export.onnx import write_onnx

FORMS: dict[str, Callable[[str, str], str]] = {
    "ct2": write_ct2, "hf": write_huggingface, "onnx": write_onnx
}  # fmt: skip

__all__ = ["FORMS"]
