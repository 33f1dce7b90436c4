"""Tests of the room `views`."""
