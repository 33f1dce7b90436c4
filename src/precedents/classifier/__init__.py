"""The user's module as we see it: outputs, loss, hidden layers, memory format."""
