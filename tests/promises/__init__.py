"""What the library promises, as tables of cases."""
