"""Tests of the room `adapters`."""
