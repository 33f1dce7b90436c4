"""Everything about a model and the process that a call might change, as one comparable value."""

import pickle
import random
from typing import Any

import numpy as np
import torch
from torch import nn

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def of(model: nn.Module) -> dict[str, Any]:
    """Values as bytes, flags, gradients, hooks, random states and the number of threads."""
    return {
        "values": {name: _bytes(value) for name, value in model.state_dict().items()},
        "training": [module.training for module in model.modules()],
        "gradients": [_bytes(p.grad) for p in model.parameters()],
        "requires_grad": [p.requires_grad for p in model.parameters()],
        "hooks": [len(getattr(module, kind)) for module in model.modules() for kind in HOOKS],
        "torch": _bytes(torch.get_rng_state()),
        "numpy": pickle.dumps(np.random.get_state()),  # noqa: NPY002  the global state is what is asked about
        "random": random.getstate(),
        "threads": torch.get_num_threads(),
        "grad mode": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
    }


def _bytes(value: torch.Tensor | None) -> bytes | None:
    return None if value is None else value.detach().numpy().tobytes()
