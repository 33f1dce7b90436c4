"""M: the matrix under whose inverse vectors are compared. One file per matrix."""
