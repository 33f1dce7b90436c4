"""Engines: who runs a pure function for many tasks: this process, others, or a cluster. One file per engine."""
