"""What is promised to users, each promise as a table of cases."""
