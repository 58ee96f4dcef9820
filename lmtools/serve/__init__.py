"""Models that a process keeps, for programs that send it lists as they come, over HTTP (`server`)
or line by line (`verb`), which a `Chooser` answers, or recordings (`speech`).
"""

VERBS = {
    "serve": (
        "more",
        "transcribe recordings and rescore lists as they come, over HTTP",
        "lmtools.serve.verb",
    )
}
