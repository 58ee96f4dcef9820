"""Our language models inside other programs: their decoders (decoders), ESPnet (espnet), their file
formats (export).
"""

VERBS = {
    "export": (
        "train language models",
        "write a language model for transformers, CTranslate2, ONNX or a decoder",
        "lmtools.bridges.export",
    )
}
