"""How gradients and curvature are computed."""
