"""Models, one file each."""
