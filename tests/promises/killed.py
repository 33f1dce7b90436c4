"""Fits and audits that are killed in the middle, each in a process of its own, and what is left of them."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from conftest import blobs, mlp, trained

from precedents import Audit, Classifier, Examples, audit
from precedents.curvature import ekfac, gauss_newton, gram, hessian, lanczos
from precedents.runtime import checkpoint

TRAIN, TEST = blobs(45, seed=1), blobs(12, seed=2)
EXAMPLES = Examples.of(TRAIN)
MODULE, LINEAR = trained(mlp, TRAIN), trained(lambda: torch.nn.Linear(5, 3), TRAIN)
Tensors = list[torch.Tensor]

steps: list[object] = []
iterate, write = checkpoint.Resumed.__iter__, checkpoint.Resumed._write


def audited(folder=None) -> Audit:
    return audit(MODULE, TRAIN, TEST, metrics=["dot_if", "dot_fisher"], k=3, keep=folder)


def model(module=MODULE, memory=None) -> Classifier:
    return Classifier.of(module, EXAMPLES, memory=memory)


def pairs() -> Tensors:
    found = lanczos.hessian_eigenpairs(model(), EXAMPLES, 10)
    return [found.values, found.vectors]


def eigenvalues() -> Tensors:
    own = model(memory="40 KB")
    return [ekfac.corrected_eigenvalues(own, EXAMPLES, ekfac.kronecker_basis(own, EXAMPLES))]


FITS: dict[str, Callable[[], Tensors]] = {
    "Gram matrix": lambda: [gram.gradient_gram(model(memory="36 KB"), EXAMPLES)],
    "exact Hessian": lambda: [hessian.exact_hessian(model(), EXAMPLES, 10)],
    "Hessian of a linear model": lambda: [hessian.linear_hessian(model(LINEAR), EXAMPLES, 10)],
    "Gauss-Newton matrix": lambda: [gauss_newton.fisher_matrix(model(memory="40 KB"), EXAMPLES)],
    "Gauss-Newton factor": lambda: [gauss_newton.fisher_factor(model(memory="40 KB"), EXAMPLES)],
    "EK-FAC": eigenvalues,
    "Lanczos": pairs,
}


def counted(self):
    """The steps of a fit, which are counted."""
    for step in iterate(self):
        steps.append(step)
        yield step


def run(fit: Callable[[], Tensors], folder: Path | None, of: str = "one") -> tuple[Tensors, int]:
    steps.clear()
    with checkpoint.kept_in(folder, of):
        return fit(), len(steps)


def killed(work: Callable[[], object], enough: Callable[[int], bool]) -> int:
    """Does work in a process that is killed when enough was written of its sums: the signal that ended it."""
    child = os.fork()
    if not child:
        written = 0

        def fatal(self, done) -> None:
            nonlocal written
            write(self, done)
            written += 1
            if enough(written):
                os.kill(os.getpid(), signal.SIGKILL)

        checkpoint.Resumed._write = fatal  # type: ignore[method-assign]
        work()
        os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def killed_audit(folder: Path) -> dict[str, object]:
    """In the fit of the trained model, and then of a random one."""

    def partial() -> int:
        return len(list(folder.glob("partial/[0-9a-f]*")))

    kills = []
    for count in (1, 2):
        ended = killed(lambda: audited(folder), lambda _, count=count: partial() >= count)
        kills.append([ended, partial()])
    return {"fit": "audit", "kills": kills}


def killed_fit(name: str, folder: Path) -> dict[str, object]:
    """Once without a kill, once with one, then of something else, and then to the end."""
    fit = FITS[name]
    expected, every = run(fit, None)
    ended = killed(lambda: run(fit, folder), lambda written: written == max(2, every - 2))
    kept = len(list((folder / "partial").iterdir()))
    other, again = run(fit, folder, of="another")
    resumed, left = run(fit, folder)
    return {
        "fit": name,
        "signal": ended,
        "kept": kept,
        "steps": every,
        "left": left,
        "again": again,
        "same": all(map(torch.equal, expected, resumed)),
        "other": all(map(torch.equal, expected, other)),
    }


def main(place: Path) -> None:
    torch.set_num_threads(1)
    checkpoint.EVERY = checkpoint.LIGHT = 0.0
    print(json.dumps(killed_audit(place / "audit")), flush=True)  # noqa: T201
    gram.BLOCK_ROWS = gauss_newton.BLOCK_ROWS = 8
    hessian.PIECE_ROWS = 16
    checkpoint.Resumed.__iter__ = counted  # type: ignore[method-assign]
    for name in FITS:
        print(json.dumps(killed_fit(name, place / name)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
