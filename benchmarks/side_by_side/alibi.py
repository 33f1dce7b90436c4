import torch
from alibi.explainers import GradientSimilarity

explainer = GradientSimilarity(
    model, torch.nn.CrossEntropyLoss(), sim_fn="grad_cos", precompute_grads=True, backend="pytorch"
)
explainer.fit(x.numpy(), y.numpy())
explanation = explainer.explain(cases.numpy(), predicted.numpy())
top = explanation.ordered_indices[:, :5]
