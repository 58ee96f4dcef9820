"""Language models in the forms that other programs load; one file a form, and a name in FORMS.

A form is a function (directory of a model, directory to write) -> what to say of it; `hf` takes
what its model card says, too.
"""

from collections.abc import Callable

from lmtools.bridges.export.ct2 import write_ct2
from lmtools.bridges.export.huggingface import write_huggingface
from lmtools.bridges.export.ngrams import write_arpa, write_arpa_ids, write_arpa_nemo, write_fst
from lmtools.bridges.export.onnx import write_onnx, write_onnx_icefall

FORMS: dict[str, Callable[..., str]] = {
    "arpa": write_arpa,
    "arpa-ids": write_arpa_ids,
    "arpa-nemo": write_arpa_nemo,
    "ct2": write_ct2,
    "fst": write_fst,
    "hf": write_huggingface,
    "onnx": write_onnx,
    "onnx-icefall": write_onnx_icefall,
}

NGRAM_FORMS = ("arpa", "arpa-ids", "arpa-nemo", "fst")  # of n-gram models, others of neural ones

__all__ = ["FORMS", "NGRAM_FORMS"]
