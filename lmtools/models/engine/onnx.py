"""ONNX Runtime as an engine: a text by itself goes through one graph, which starts no operator from
Python.
"""

import threading
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from lmtools.base.errors import install_extra
from lmtools.models.engine.graph import INPUTS, OUTPUT, ScoringGraph
from lmtools.models.lm import LanguageModel
from lmtools.text.subword import BOS, EOS, MASK

FAMILIES = ("causal", "tta", "masked")
PACKAGES = ("onnx", "onnxruntime")


def refuse_graph(lm: LanguageModel, normalised: bool) -> str:
    """Return why ONNX Runtime does not compute this model's scores here, or "" where it does."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        return f"needs the package {' and '.join(missing)}; {install_extra('onnx')}"
    if lm.settings.model not in FAMILIES:
        return f"computes {', '.join(FAMILIES)} models, not {lm.settings.model}; leave --engine out"
    if not normalised:
        return "computes no scores without normalisation; leave --engine out"
    if lm.output.weight is None or not lm.output.linear:
        return f"has no graph for criterion {lm.settings.criterion}; leave --engine out"
    return ""


class OnnxScores:
    """Log-probabilities of single sentences by ONNX Runtime, one thread each.

    A call has nothing but one sentence, so that no bit of a score depends on others. The graph is
    made on the first call.
    """

    def __init__(self, lm: LanguageModel, precision: str, masked: bool):
        self.lm, self.precision, self.masked = lm, precision, masked
        self.session = None
        self.weights: list = []  # the session reads their memory
        self.lock = threading.Lock()

    def log_probs(self, sentence: Sequence[int]) -> np.ndarray:
        """Return log p of each token and the end of a sentence that fits the positions, in nats,
        float64 (tokens + 1,); of a masked model each from a copy in which it alone is masked.
        """
        after = self.lm.objective.boundary - 1
        tokens = np.array([[BOS, *sentence, *[EOS] * after]])
        targets, rows = np.array([*sentence, EOS]), np.arange(len(sentence) + 1) + after
        if self.masked:
            copies = np.arange(len(rows))
            tokens = tokens.repeat(len(rows), axis=0)
            tokens[copies, rows] = MASK
            rows = rows + copies * tokens.shape[1]
        return self.run(tokens, rows, targets).astype(np.float64)

    def run(self, tokens: np.ndarray, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return log p (P,) in nats of targets (P,) by the states of the positions `rows` (P,)
        among all of tokens (N, T), which are of one length.
        """
        if self.session is None:
            with self.lock:
                self.session = self.session or self.start()
        values = tokens, rows, targets[:, None]
        return self.session.run([OUTPUT], dict(zip(INPUTS, values, strict=True)))[0][:, 0]

    def start(self):
        import onnx
        import onnxruntime

        graph = ScoringGraph(onnx, self.lm, self.precision == "int8")
        content = graph.build()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        outside = graph.outside
        self.weights = [*map(onnxruntime.OrtValue.ortvalue_from_numpy, outside.values())]
        options.add_external_initializers([*outside], self.weights)
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
