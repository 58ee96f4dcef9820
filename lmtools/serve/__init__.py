"""Language models and weights that a process keeps, for programs that send it lists as they come:
over HTTP (`server`), or line by line (`verb`). Both ask a `Chooser`.
"""

VERBS = {
    "serve": ("more", "rescore lists as they come, over HTTP or line by line", "lmtools.serve.verb")
}
