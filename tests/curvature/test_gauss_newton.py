import torch

from precedents.classifier.loss import CrossEntropy
from precedents.curvature.gauss_newton import fisher_factor, fisher_matrix


def test_roots_sum_to_the_covariance_of_the_softmax() -> None:
    logits = torch.tensor([[0.0, 1.0, -2.0, 0.5], [30.0, -30.0, 0.0, 1.0], [0.0, 0.0, 0.0, 800.0]]).double()
    p = logits.softmax(dim=1)
    wanted = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    columns = CrossEntropy().roots(logits, torch.zeros(len(logits), dtype=torch.long))
    assert len(columns) == 3
    torch.testing.assert_close(
        sum(c[:, :, None] * c[:, None, :] for c in columns), wanted, rtol=1e-12, atol=1e-15
    )


def test_fisher_matrix_is_made_of_its_factor(classifier, examples) -> None:
    rows = fisher_factor(classifier, examples)
    torch.testing.assert_close(fisher_matrix(classifier, examples), rows.T @ rows / len(examples))
