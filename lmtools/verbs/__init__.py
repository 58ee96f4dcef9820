"""One module a verb: `arguments(parser)` declares, `run(args)` does."""
