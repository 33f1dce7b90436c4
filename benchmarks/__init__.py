"""How fast and how large: precedents beside the machine's limit and beside its peers."""
