"""The explorer: pages on which a person works with precedents, served to their own browser."""
