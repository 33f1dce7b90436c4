"""Codes of training rows: about a kilobyte each, from which the next question finds whom to compute again."""
