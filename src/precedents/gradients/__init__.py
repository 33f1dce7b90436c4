"""Per-example (per-sample) gradients: the call, the plan, the recording, fallbacks, rows, factors, layers."""
