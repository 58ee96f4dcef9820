"""WER, CER, MER, BLEU, chrF and TER at corpus level, oracles of N-best lists, and the significance
of differences.
"""
