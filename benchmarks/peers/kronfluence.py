"""kronfluence: pairwise scores under the identity."""

from copy import deepcopy
from math import ceil
from tempfile import TemporaryDirectory

import numpy as np
from kronfluence.analyzer import Analyzer, prepare_model
from kronfluence.arguments import FactorArguments, ScoreArguments
from kronfluence.task import Task
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset


class Classification(Task):
    """Cross entropy, of the training instances as of the cases."""

    def compute_train_loss(
        self,
        batch: tuple[Tensor, Tensor],
        model: nn.Module,
        sample: bool = False,  # noqa: ARG002
    ) -> Tensor:
        """Summed over the batch."""
        x, y = batch
        return cross_entropy(model(x), y, reduction="sum")

    def compute_measurement(self, batch: tuple[Tensor, Tensor], model: nn.Module) -> Tensor:
        """The same."""
        return self.compute_train_loss(batch, model)


def scores(
    model: nn.Module, x_train: Tensor, y_train: Tensor, x_cases: Tensor, y_cases: Tensor, *, batch: int
) -> np.ndarray:
    """Grad-Dot [m, n]."""
    task = Classification()
    train, cases = TensorDataset(x_train, y_train), TensorDataset(x_cases, y_cases)
    with TemporaryDirectory() as folder:
        prepared = prepare_model(deepcopy(model), task)
        analyzer = Analyzer("speed", prepared, task, cpu=True, disable_tqdm=True, output_dir=folder)
        identity = FactorArguments(strategy="identity")
        analyzer.fit_all_factors("identity", train, per_device_batch_size=batch, factor_args=identity)
        analyzer.compute_pairwise_scores(
            "scores",
            "identity",
            query_dataset=cases,
            train_dataset=train,
            per_device_query_batch_size=batch,
            per_device_train_batch_size=batch,
            score_args=ScoreArguments(query_gradient_accumulation_steps=ceil(len(cases) / batch)),
        )
        return analyzer.load_pairwise_scores("scores")["all_modules"].numpy()
