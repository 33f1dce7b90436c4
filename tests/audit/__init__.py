"""Tests of the room `audit`."""
