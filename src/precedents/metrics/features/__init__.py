"""phi: what an instance is to a metric, as a vector. One file per feature map."""
