"""What the benchmark of the explorer measures by: clients, a browser, a set of a million."""
