"""Our language models inside other programs: their decoders (decoders), ESPnet (espnet), their file
formats (export).
"""

VERBS = {
    "export": (
        "more",
        "write a language model for transformers, CTranslate2 or ONNX",
        "lmtools.bridges.export",
    )
}
