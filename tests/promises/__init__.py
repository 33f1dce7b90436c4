"""What is promised, each promise as a table of cases."""
