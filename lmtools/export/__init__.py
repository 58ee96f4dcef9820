"""Language models in the forms that other programs load; one file a form, and a name in FORMS.

A form is a function (directory of `lmtools train`, directory to write) -> what to say of it.
"""

from collections.abc import Callable

from lmtools.export.ct2 import write_ct2
from lmtools.export.onnx import write_onnx

FORMS: dict[str, Callable[[str, str], str]] = {"ct2": write_ct2, "onnx": write_onnx}

__all__ = ["FORMS"]
