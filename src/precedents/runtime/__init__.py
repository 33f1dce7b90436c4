"""How long work reports on itself."""
