"""s: how the relevance comes from a block of inner products. One file per similarity."""
