"""N-best lists of the first pass: recognisers of speech (asr), translators of text (translate), and
the journal by which a killed run goes on. What other programs wrote is read by formats.
"""
