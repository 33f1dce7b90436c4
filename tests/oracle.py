"""The paper's formulas, dense and one pair at a time, by the square-root road that the package never takes.

Nothing here is fast and nothing comes from the package: plain autograd for one instance, the Hessian by
differentiating the mean loss twice, explicit inverses and explicit matrix square roots.
"""

import numpy as np
import scipy.linalg
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

DAMPING = 1e-3  # relative to the mean absolute entry of the diagonal


def relevance(name: str, model: nn.Module, train: tuple[Tensor, Tensor], cases: Tensor) -> np.ndarray:
    """The relevance [m, n] of each training instance to each case under one of the eighteen metrics."""
    similarity, _, kind = name.partition("_")
    case_vectors = [phi(kind, model, x, predicted(model, x)) for x in cases]
    train_vectors = [phi(kind, model, x, int(y)) for x, y in zip(*train, strict=True)]
    if similarity == "dot" and kind in ("if", "fisher"):
        inverse = np.linalg.inv(damped(kind, model, train))
        return np.array([[a @ inverse @ b for b in train_vectors] for a in case_vectors])
    if kind in ("if", "fisher"):
        root = scipy.linalg.sqrtm(np.linalg.inv(damped(kind, model, train))).real
        case_vectors = [root @ a for a in case_vectors]
        train_vectors = [root @ b for b in train_vectors]
    pair = {"dot": dot, "cos": cosine, "l2": l2}[similarity]
    return np.array([[pair(a, b) for b in train_vectors] for a in case_vectors])


def dot(a: np.ndarray, b: np.ndarray) -> float:
    return a @ b


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def l2(a: np.ndarray, b: np.ndarray) -> float:
    return -(np.linalg.norm(a - b) ** 2)


def phi(kind: str, model: nn.Module, x: Tensor, y: int) -> np.ndarray:
    """The vector of one instance, before any square root is applied."""
    if kind == "x":
        return x.flatten().numpy()
    if kind == "last":
        return hidden(model, x)[-1]
    if kind == "all":
        return np.concatenate(hidden(model, x))
    return gradient(model, x, y)


def predicted(model: nn.Module, x: Tensor) -> int:
    return int(model(x[None]).argmax())


def trainable(model: nn.Module) -> list[Tensor]:
    return [p for p in model.parameters() if p.requires_grad]


def gradient(model: nn.Module, x: Tensor, y: int) -> np.ndarray:
    """The gradient of one instance's cross entropy, all trainable parameters in a row."""
    loss = cross_entropy(model(x[None]), torch.tensor([y]))
    found = torch.autograd.grad(loss, trainable(model), materialize_grads=True)
    return torch.cat([g.flatten() for g in found]).numpy()


def hidden(model: nn.Module, x: Tensor) -> list[np.ndarray]:
    """What each Linear after the first receives."""
    received: list[np.ndarray] = []
    linears = [module for module in model.modules() if isinstance(module, nn.Linear)]
    handles = [
        module.register_forward_pre_hook(lambda _, args: received.append(args[0][0].detach().numpy()))
        for module in linears[1:]
    ]
    model(x[None])
    for handle in handles:
        handle.remove()
    return received


def damped(kind: str, model: nn.Module, train: tuple[Tensor, Tensor]) -> np.ndarray:
    """The matrix whose inverse is taken: with a ridge relative to its diagonal."""
    matrix = hessian(model, train) if kind == "if" else fisher(model, train)
    return matrix + DAMPING * np.abs(np.diag(matrix)).mean() * np.eye(len(matrix))


def hessian(model: nn.Module, train: tuple[Tensor, Tensor]) -> np.ndarray:
    """The Hessian of the mean loss, one entry of the gradient after the other."""
    parameters = trainable(model)
    loss = cross_entropy(model(train[0]), train[1])
    entries = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters, create_graph=True)])
    rows = [
        torch.autograd.grad(entry, parameters, retain_graph=True, materialize_grads=True) for entry in entries
    ]
    return np.array([torch.cat([part.flatten() for part in row]).numpy() for row in rows])


def fisher(model: nn.Module, train: tuple[Tensor, Tensor]) -> np.ndarray:
    """The mean outer product of the gradients for the given labels."""
    gradients = [gradient(model, x, int(y)) for x, y in zip(*train, strict=True)]
    return sum(np.outer(g, g) for g in gradients) / len(gradients)


def true_fisher(model: nn.Module, train: tuple[Tensor, Tensor]) -> np.ndarray:
    """The mean outer product of the gradients, with every label weighed by the model's own probability."""
    total = 0.0
    for x in train[0]:
        p = model(x[None]).softmax(dim=1)[0].detach().numpy()
        for label, weight in enumerate(p):
            g = gradient(model, x, label)
            total = total + weight * np.outer(g, g) / len(train[0])
    return total


def gauss_newton(model: nn.Module, train: tuple[Tensor, Tensor]) -> np.ndarray:
    """The mean of J^T (diag p - p p^T) J, with the Jacobian J of the logits."""
    total = 0.0
    for x in train[0]:
        logits = model(x[None])[0]
        p = logits.softmax(dim=0).detach().numpy()
        rows = [torch.autograd.grad(logit, trainable(model), retain_graph=True) for logit in logits]
        jacobian = np.array([torch.cat([part.flatten() for part in row]).numpy() for row in rows])
        total = total + jacobian.T @ (np.diag(p) - np.outer(p, p)) @ jacobian / len(train[0])
    return total
