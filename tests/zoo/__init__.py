"""Tests of the room `zoo`."""
