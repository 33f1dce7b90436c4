"""Data sets, architectures and training of the paper's settings."""
