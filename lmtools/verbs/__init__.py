"""The verbs of the command line, one module each, and the options that several of them have."""
