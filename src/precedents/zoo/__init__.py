"""Data sets, architectures, training, and runs: trained models in folders."""
