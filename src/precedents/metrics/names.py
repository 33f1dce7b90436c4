"""The paper's names of its eighteen metrics as texts, which `paper` reads; importing them is light."""

from collections.abc import Mapping

FORMS: Mapping[str, str] = {
    "l2_x": "l2:inputs",
    "l2_last": "l2:last_hidden",
    "l2_all": "l2:all_hidden",
    "cos_x": "cosine:inputs",
    "cos_last": "cosine:last_hidden",
    "cos_all": "cosine:all_hidden",
    "dot_x": "dot:inputs",
    "dot_last": "dot:last_hidden",
    "dot_all": "dot:all_hidden",
    "dot_if": "dot:gradient/hessian(negative=keep)",  # influence function
    "cos_if": "cosine:gradient/hessian",  # relative influence function
    "l2_if": "l2:gradient/hessian",
    "dot_fisher": "dot:gradient/fisher",  # Fisher kernel
    "cos_fisher": "cosine:gradient/fisher",
    "l2_fisher": "l2:gradient/fisher",
    "dot_grad": "dot:gradient",
    "cos_grad": "cosine:gradient",
    "l2_grad": "l2:gradient",
}

TITLES: Mapping[str, str] = {  # by which some are known
    "cos_grad": "Grad-Cos",
    "dot_grad": "Grad-Dot",
    "cos_if": "RIF",
    "dot_if": "IF",
    "dot_fisher": "Fisher kernel",
}

DEFAULT = GRAD_COS = "cos_grad"  # DEFAULT: the metric of who is told none

ALIASES: Mapping[str, str] = {
    "if": "dot_if",
    "rif": "cos_if",
    "fk": "dot_fisher",
    "gd": "dot_grad",
    "gc": "cos_grad",
}
