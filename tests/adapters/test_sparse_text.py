"""Sparse rows of a vectorizer stay sparse up to the product, and give the scores of the dense ones."""

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import precedents as pr
from precedents import Explainer
from precedents.adapters.scikit_learn import ScikitLearn
from precedents.runtime.sparse import SparseRows

N, WIDTH, CLASSES = 40, 120, 3
CURVATURE = ["dot:gradient/fisher(kind=true)", "cosine:gradient/hessian(kind=gauss_newton)"]


def drawn(seed: int = 0, width: int = WIDTH, n: int = N) -> tuple[Any, np.ndarray]:
    draw = np.random.default_rng(seed)
    return sparse.random(n, width, 0.08, format="csr", random_state=draw), draw.integers(CLASSES, size=n)


X, Y = drawn()
CASES = drawn(1)[0][:4]
MODELS = {
    "multinomial": LogisticRegression().fit(X, Y),
    "without intercept": LogisticRegression(fit_intercept=False).fit(X, Y),
    "two classes": LogisticRegression().fit(X, Y == 1),
    "one against the rest": SGDClassifier(loss="log_loss", max_iter=5, tol=None).fit(X, Y),
    "perceptron": MLPClassifier((5,), random_state=0).partial_fit(X, Y, classes=range(CLASSES)),
    "perceptron of two": MLPClassifier((1,), random_state=0).partial_fit(X, Y == 1, classes=[False, True]),
}


def labels_of(model: Any) -> np.ndarray:
    return Y if len(model.classes_) == CLASSES else Y == 1


@pytest.fixture
def sparsely(monkeypatch) -> None:
    """More rows than two of a large set are never dense."""
    made = SparseRows.dense

    def dense(self: SparseRows) -> torch.Tensor:
        assert self.rows.shape[0] <= 2, "made dense"
        return made(self)

    monkeypatch.setattr(SparseRows, "dense", dense)


def close(ours: torch.Tensor, theirs: torch.Tensor, within: float = 1e-10) -> None:
    assert float((ours - theirs).abs().max()) <= within * float(theirs.abs().max())


@pytest.mark.parametrize("name", ["cos_grad", "dot_grad"])
@pytest.mark.parametrize("model", MODELS)
def test_gradient_scores_are_those_of_plain_autograd_one_example_at_a_time(model, name) -> None:
    fitted = MODELS[model]
    explainer = Explainer(fitted, (X, labels_of(fitted)), name)
    adapter = ScikitLearn(fitted)
    cases = torch.tensor(fitted.predict(CASES).tolist()).tolist()

    def alone(row: Any, label: Any) -> torch.Tensor:
        logits = adapter.module(torch.tensor(row.toarray()))
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor([list(fitted.classes_).index(label)]))
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(adapter.module.parameters()))])

    ours = explainer.scores(CASES)
    train = torch.stack([alone(X[[i]], labels_of(fitted)[i]) for i in range(N)])
    asked = torch.stack([alone(CASES[[i]], cases[i]) for i in range(CASES.shape[0])])
    cross, own, their = asked @ train.T, asked.square().sum(1)[:, None], train.square().sum(1)
    wanted = {"dot_grad": cross, "cos_grad": cross / (own * their).sqrt()}
    close(ours, wanted[name], 1e-6)  # softmax - onehot of autograd cancels where a prediction is saturated


@pytest.mark.parametrize("name", [*pr.METRICS, *CURVATURE])
@pytest.mark.parametrize("model", ["multinomial", "two classes", "perceptron"])
def test_every_metric_is_that_of_the_dense_rows(model, name) -> None:
    fitted = MODELS[model]
    asked = (CASES, labels_of(fitted))
    try:
        wanted = Explainer(fitted, (X.toarray(), asked[1]), name).scores(CASES.toarray())
    except pr.NotApplicable:
        with pytest.raises(pr.NotApplicable):
            Explainer(fitted, (X, asked[1]), name)
        return
    close(Explainer(fitted, (X, asked[1]), name).scores(CASES), wanted, 1e-10 if "if" not in name else 1e-8)


@pytest.mark.parametrize("memory", ["3 MB", "30 MB"])
def test_blocks_and_budgets_change_nothing(memory, monkeypatch) -> None:
    wanted = Explainer(MODELS["multinomial"], (X, Y)).scores(CASES)
    monkeypatch.setattr("precedents.runtime.budget.MANY", 7)
    monkeypatch.setattr("precedents.gradients.plan.MANY", 3)
    explainer = Explainer(MODELS["multinomial"], (X, Y), memory=memory)
    for _ in range(3):
        close(explainer.scores(CASES), wanted, 1e-14)


WORDS = [f"word{i}" for i in range(60)]
DRAW = np.random.default_rng(3)
TEXTS = [" ".join(DRAW.choice(WORDS, 6)) for _ in range(30)]
TOPICS = [("farm", "sport")[i % 2] for i in range(30)]


@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(),
        TfidfVectorizer(dtype=np.float32),
        CountVectorizer(),
        HashingVectorizer(n_features=512),
    ],
    ids=str,
)
def test_every_vectorizer_stays_sparse(vectorizer) -> None:
    model = make_pipeline(vectorizer, LogisticRegression()).fit(TEXTS, TOPICS)
    explainer = Explainer(model, (TEXTS, TOPICS))
    rows = explainer.subject.train.take(range(3)).inputs
    assert isinstance(rows, SparseRows)
    features = model[:-1].transform(TEXTS).toarray().astype(float)
    wanted = Explainer(model[-1], (features, TOPICS)).scores(features[:4])
    close(
        explainer.scores(TEXTS[:4]), wanted, 1e-6 if model[:-1].transform(TEXTS).dtype == np.float32 else 1e-10
    )


def test_categories_of_a_column_transformer_stay_sparse() -> None:
    table = np.array([[DRAW.choice(WORDS[:30]), DRAW.choice(WORDS[30:])] for _ in range(40)], dtype=object)
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [0, 1]))
    model = make_pipeline(columns, LogisticRegression()).fit(table, np.arange(40) % 2)
    explainer = Explainer(model, (table, np.arange(40) % 2))
    assert isinstance(explainer.subject.train.first, SparseRows)
    features = model[:-1].transform(table).toarray()
    close(explainer.scores(table[:3]), Explainer(model[-1], (features, np.arange(40) % 2)).scores(features[:3]))


def test_rows_of_which_few_are_zero_are_held_dense() -> None:
    full = sparse.csr_matrix(np.random.default_rng(0).random((20, 6)) + 0.1)
    explainer = Explainer(LogisticRegression().fit(full, np.arange(20) % 2), (full, np.arange(20) % 2))
    assert not isinstance(explainer.subject.train.first, SparseRows)


@pytest.mark.parametrize(
    "given", [sparse.csc_array, sparse.coo_matrix, sparse.csr_array, lambda x: x.toarray()]
)
def test_cases_and_tests_take_the_form_of_the_training_set(given) -> None:
    explainer = Explainer(MODELS["multinomial"], (X, Y))
    assert torch.equal(explainer.scores(given(CASES)), explainer.scores(CASES))
    found = explainer.explain(given(CASES), k=2, labels=[0, 1, 2, 0])
    assert isinstance(found.cases, SparseRows)
    test = explainer.subject.test((given(CASES), Y[:4]))
    assert isinstance(test.first, SparseRows)


def wide(n: int = 300, width: int = 30_000) -> tuple[Any, Any, np.ndarray]:
    x, y = drawn(2, width, n)
    x.data[:] = np.random.default_rng(0).random(x.nnz)
    x = sparse.csr_matrix(x.multiply(sparse.random(n, width, 0.02, random_state=np.random.default_rng(1)) != 0))
    model = LogisticRegression()
    model.coef_ = np.random.default_rng(0).normal(size=(CLASSES, width))
    model.intercept_, model.classes_, model.n_features_in_ = np.zeros(CLASSES), np.arange(CLASSES), width
    return model, x, y


@pytest.mark.usefixtures("sparsely")
def test_nothing_that_is_asked_makes_rows_dense(tmp_path) -> None:
    model, x, y = wide()
    for name in ("cos_grad", "l2_x", "cos_fisher"):
        explainer = Explainer(model, (x, y), name)
        found = explainer.explain(x[:12], k=3, labels=y[:12])
        assert found.top.indices[:, 0].tolist() == list(range(12))
        assert "duplicate of the case" in str(found)
        str(found), found.to_dict(), found.to_frame(), found.to_html()
        explainer.estimate(3)
        explainer.save(tmp_path / name)
        loaded = Explainer.load(tmp_path / name, model, (x, y))
        assert torch.equal(loaded.scores(x[:5]), explainer.scores(x[:5]))


@pytest.mark.usefixtures("sparsely")
def test_an_audit_with_all_criteria_makes_no_rows_dense(tmp_path) -> None:
    model, x, y = wide(n=60, width=8_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few cases
        for _ in range(2):  # the second reads what the first has kept
            audit = pr.audit(
                model, (x, y), (x[:8], y[:8]), metrics=["cos_x", "cos_grad"], keep=tmp_path / "kept"
            )
    assert {"model_randomization", "identical_class", "identical_instance"} <= set(audit.criteria)
    assert audit["cos_x", "identical_instance"].mean == 1
    assert {pair[0] for pair in audit.duplicates} == set(range(8))


def test_what_is_saved_is_little_more_than_the_rows(tmp_path) -> None:
    model, x, y = wide()
    explainer = Explainer(model, (x, y))
    explainer.save(tmp_path / "saved")
    size = sum(file.stat().st_size for file in (tmp_path / "saved").iterdir())
    rows = x.data.nbytes + x.indices.nbytes + x.indptr.nbytes
    assert size < 1.5 * rows + 2**16
    assert 0.5 * size < explainer.estimate().disk < 2 * size


def test_an_estimate_counts_what_is_held_and_not_the_zeros() -> None:
    model, x, y = wide()
    assert Explainer(model, (x, y)).estimate(10).memory < 60e6  # dense they were 216 MB a gradient of 100


def test_a_matrix_that_is_too_large_is_refused_with_what_to_do() -> None:
    model, x, y = wide()
    explainer = Explainer(model, (x, y), "cos_if", memory="5 MB")
    with pytest.raises(pr.BudgetError, match="cos_grad"):
        explainer.scores(x[:2])
    assert explainer.estimate(2).memory > 5e6


def test_the_hessian_of_two_classes_is_inverted_by_inner_products_alone(sparsely) -> None:
    model, x, y = wide(n=60)
    two = LogisticRegression()
    two.coef_, two.intercept_, two.classes_ = model.coef_[:1], np.zeros(1), np.array([False, True])
    two.n_features_in_ = model.n_features_in_
    explainer = Explainer(two, (x, y == 1), "cos_if", memory="40 MB")
    scores = explainer.scores(x[:3])
    assert "Gauss-Newton" in str(explainer.relevance.curvature)  # which of a linear model is the Hessian
    few = np.unique(x.indices)  # other columns add nothing but zeros, and the damping is by all of them
    vectors = explainer.relevance.vectors
    _, block = next(iter(vectors.blocks()))
    assert vectors.row_bytes < 8 * len(few) + 10**5
    assert len(block) == 60
    assert bool(scores.isfinite().all())


def test_a_curvature_that_memory_decided_is_loaded_with_other_memory(tmp_path) -> None:
    model = MODELS["multinomial"]
    small = Explainer(model, (X, Y), "cos_if", memory="3 MB")
    assert small.relevance.curvature.startswith("Gauss-Newton")  # the whole matrix would not fit
    small.save(tmp_path / "saved")
    loaded = Explainer.load(tmp_path / "saved", model, (X, Y))
    assert loaded.relevance.curvature.startswith("Gauss-Newton")
    assert torch.equal(loaded.scores(CASES), small.scores(CASES))


@pytest.mark.parametrize("change", ["value", "place", "new entry"])
def test_rows_that_change_are_named(change) -> None:
    x = X.copy()
    explainer = Explainer(MODELS["multinomial"], (x, Y))
    explainer.scores(CASES)
    place, row = x.indptr[3], 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy's, of a new entry
        if change == "value":
            x.data[place] += 1e-9
        elif change == "place":
            x.indices[place] = next(c for c in range(WIDTH) if c not in x[row].indices)
        else:
            x[row, next(c for c in range(WIDTH) if c not in x[row].indices)] = 1.0
    with pytest.raises(pr.StaleError, match="Row 3 of the training set"):
        explainer.scores(CASES)


def test_a_folder_of_other_rows_is_refused(tmp_path) -> None:
    Explainer(MODELS["multinomial"], (X, Y)).save(tmp_path / "saved")
    other = X.copy()
    other.data[5] += 1e-9
    with pytest.raises(pr.StaleError, match="rows of the training set"):
        Explainer.load(tmp_path / "saved", MODELS["multinomial"], (other, Y))


def test_the_parts_of_grad_cos_are_those_of_the_dense_rows() -> None:
    model = MODELS["multinomial"]
    ours, theirs = (
        Explainer(model, (held(X), Y)).explain(held(CASES), k=3).parts
        for held in (sparse.csr_matrix, lambda x: x.toarray())
    )
    assert ours is not None
    assert theirs is not None
    close(ours.residual, theirs.residual)
    close(ours.feature, theirs.feature)


def test_a_user_s_vectorise_is_given_rows_that_do_all_that_a_tensor_does() -> None:
    model = MODELS["multinomial"]
    ours = Explainer(model, (X, Y), "cos_x", vectorise=lambda x: x[:, ::2] * 2).scores(CASES)
    dense = Explainer(model, (X.toarray(), Y), "cos_x", vectorise=lambda x: x[:, ::2] * 2)
    close(ours, dense.scores(CASES.toarray()))


def test_cases_may_be_asked_for_from_several_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    explainer = Explainer(MODELS["perceptron"], (X, Y))
    wanted = explainer.scores(CASES)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: explainer.scores(CASES), range(8)):
            assert torch.equal(found, wanted)


def test_a_zero_of_a_sparse_case_is_said_to_be_zero() -> None:
    explainer = Explainer(MODELS["multinomial"], (X, Y), "dot_grad")
    said = str(explainer.explain(CASES[:1], k=20))
    assert "case: None" not in said
    assert re.search(r"x\d+ 0\.\d+ \((case: 0|[+-]\d+\.\d sd)\)", said)
