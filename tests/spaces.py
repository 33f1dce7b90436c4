"""Workspaces and vectors for tests, from a model and its training set."""

from typing import Any

from precedents.adapters._subject import Subject
from precedents.metrics.features.gradient import gradient
from precedents.metrics.vectors import Vectors
from precedents.metrics.workspace import Workspace


def workspace_of(model: Any, train: Any, **told: Any) -> Workspace:
    """A fresh workspace."""
    return Workspace(Subject.of(model, train, **told))


def gradients_of(workspace: Workspace) -> Vectors:
    """The gradients of its training set."""
    return Vectors.of(workspace, gradient)
