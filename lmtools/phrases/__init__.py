"""Glossaries: phrases that lists should have."""

NETWORK_ACTIONS = {
    "substitute": ("lmtools.phrases.substitute:arguments", "lmtools.phrases.substitute:run")
}
