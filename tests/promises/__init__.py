"""What the documentation promises, as tables of cases."""
