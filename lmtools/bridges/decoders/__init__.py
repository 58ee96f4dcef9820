"""Language models of `lmtools.load` inside other programs' live decoders, one file a decoder.

Each imports its package by itself, and takes left-to-right models alone: n-grams, `causal`, `lstm`,
`gcnn`. A decoder's tokens are never ours; what they share are words. So every adapter scores a word
when it is complete, from the words before it, with the prefixes of a search kept as one tree
(lmtools.score.base), and what a finished hypothesis gets in all is `LM.score` of its text.
"""
