"""Kinds of classifiers that users bring, one file each: `name(model)` reads the model or says None."""
