"""Labelled instances: examples, where they are read from, what a model is fed, labels."""
