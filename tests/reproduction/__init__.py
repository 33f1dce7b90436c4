"""Tests of the room `reproduction`."""
