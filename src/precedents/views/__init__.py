"""Values in, tables and pictures out."""
