"""Parts of an experiment: lists, language models, pairs, as its artifacts describe them."""
