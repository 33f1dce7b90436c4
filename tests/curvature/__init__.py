"""Tests of the room `curvature`."""
