"""The equation: R(case, train) = s(K, q, t) with K = phi(case) M^-1 phi(train)^T, and its three axes."""
