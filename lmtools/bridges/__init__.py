"""Our language models inside other programs: their decoders (decoders), ESPnet (espnet), their file
formats (export), and as a service (serve). Nothing in lmtools imports this room but verbs.
"""
