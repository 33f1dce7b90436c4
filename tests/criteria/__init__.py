"""Tests of the room `criteria`."""
