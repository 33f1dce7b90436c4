"""The laws of each registry, run over the names of its files."""
