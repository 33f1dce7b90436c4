"""How per-example gradients follow from what a layer received and what came back to it. One file per layer."""
