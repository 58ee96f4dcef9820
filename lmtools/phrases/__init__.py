"""Glossaries (`glossary`): names, terms and other phrases that lists should have. They are found in
texts (`matching`), are a column of scores whose weight is bounded by what it harms (`column`,
`harm`), are judged (`evaluate`), put in the place of near words (`substitute`), and counted where
they change right text (`clean`).
"""

VERBS = {
    "harm": ("more", "bound how often a glossary changes what was right", "lmtools.phrases.clean")
}

HOOKS = {
    "glossary": "lmtools.phrases.glossary:PhraseSpec",
    "phrase_tables": "lmtools.phrases.report:phrase_tables",
}
NETWORK_ACTIONS = {
    "substitute": ("lmtools.phrases.substitute:arguments", "lmtools.phrases.substitute:run")
}
