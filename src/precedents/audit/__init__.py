"""Which relevance metrics may be believed on this model and these data, and which of them to use."""
