"""Tests of the room `gradients`."""
