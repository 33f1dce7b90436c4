"""The matrices that M can be: Gram, Hessian, Gauss-Newton, Lanczos, EK-FAC."""
