"""Tests of what the library promises, each a table of cases."""
