"""From a model and its training set to explanations: precedents, cautions, keeping on disk."""
