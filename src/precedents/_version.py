"""The version, which everything that is kept on disk carries."""

__version__ = "0.2.0"
