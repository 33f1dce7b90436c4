"""Tests of the room `classifier`."""
