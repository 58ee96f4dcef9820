"""Pages that stand below another in the site's sidebar."""

BELOW = {
    "docs/rescoring": ("evaluation", "advanced", "ears"),
    "docs/lms": ("llms", "training-rescorers", "models", "export", "speed"),
    "docs/python": ("api",),
    "docs/recipes": (
        "clusters",
        *(f"../egs/{name}" for name in (
            "librispeech/README", "librispeech/RESULTS", "librispeech/mini/README",
            "librispeech/mini-real/README", "wmt13/README", "wmt13/RESULTS", "wmt13/mini/README",
            "gbw/README", "gbw/RESULTS", "gbw/tasks/mini/README", "stsb/README", "stsb/RESULTS",
            "stsb/mini/README",
        )),
    ),
    "CONTRIBUTING": (
        "ARCHITECTURE", "SECURITY", "tests/trust/README", "docs/stability", "CHANGES",
        "CODE_OF_CONDUCT",
    ),
}  # fmt: skip
