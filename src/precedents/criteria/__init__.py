"""What a metric must satisfy to be believed. One file per criterion."""
