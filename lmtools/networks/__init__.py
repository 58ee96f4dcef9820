"""Confusion networks of lists (`lists`), of lattices (`mbr`) and of several systems (`rover`,
`systems`); the confidences of their words; their files, and their part of a report.
"""

VERBS = {
    "network": (
        "more",
        "build confusion networks, word confidences, combine systems (ROVER)",
        "lmtools.networks.verb",
    )
}
LATTICES = {"wcn": "lmtools.networks.wcn"}
HOOKS = {
    "read_networks": "lmtools.networks.report:read_networks",
    "confidence_tables": "lmtools.networks.report:confidence_tables",
    "confidence_pictures": "lmtools.networks.report:confidence_pictures",
}
