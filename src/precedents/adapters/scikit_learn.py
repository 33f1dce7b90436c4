"""scikit-learn: fitted linear and perceptron classifiers, alone or at the end of a pipeline.

What comes before the last step is done by the pipeline itself; the last step becomes a module in float64 with
the probabilities of `predict_proba`. So the model's inputs, also those of the metrics on inputs, are the
transformed features, while a person (and `render`) sees the rows as they were given. A search such as
GridSearchCV is its best estimator.

The loss of an instance is the cross entropy of the predicted probabilities, as for every model. The training's
penalty, class weights and sample weights are no part of it. Weights do not change cosines of gradients. The
Hessian is that of the mean loss without the penalty, and damping stands in its place. The penalty itself would
add 1/(n C) to the diagonal for LogisticRegression, alpha for SGDClassifier (both twice for two classes, whose
weights are here in two rows) and alpha/n for MLPClassifier, intercepts apart: this number over the mean
absolute entry of the Hessian's diagonal, as InverseHessian(damping=...), is nearest to what was minimised.
One-vs-rest classifiers minimised a loss for each class; here theirs, too, is the cross entropy of what they
predict.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from math import prod
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from precedents.adapters._adapter import Adapter
from precedents.adapters._containers import Container, Entries, Frame, Matrix, is_frame, is_sparse, own, rows_of
from precedents.adapters._ensembles import Whereabouts
from precedents.adapters._misplaced import misplaced, undated, unfilled
from precedents.adapters._named import names_out
from precedents.adapters._opened import by_columns, opened, step_names, unwrapped
from precedents.adapters._skorch import Net, is_net
from precedents.adapters._unknown import unknown
from precedents.data.examples import Chosen, Examples, Source
from precedents.data.ids import Id, checked_ids, ids_among, index_ids
from precedents.data.inputs import Inputs
from precedents.data.labels import refuse_masked
from precedents.data.watch import Watch, shared, shared_labels
from precedents.errors import InputError
from precedents.runtime.budget import FLOAT64
from precedents.runtime.sparse import SparseRows
from precedents.runtime.wording import a_type
from precedents.seen import clipped, nearest

SAME = 1e-6  # how far probabilities may be from those of predict_proba,
SINGLE = 1e-3  # and where it computes in float32
MOST = 200  # letters of what the model does not know of a row
TRIED = 8  # instances for which they are compared
UNDERFLOW = -700.0  # logits of one-vs-rest for which scikit-learn's own probabilities vanish


@dataclass(frozen=True, eq=False)
class Transformed(Source):
    """Transformed instances; sparse ones stay sparse."""

    matrix: "SparseRows | np.ndarray[Any, Any]"  # [n, d]
    rows: Container  # what they were made from

    @cached_property
    def largest(self) -> tuple[int, int]:
        """Of sparse rows two of about mean length: they are read many at a time."""
        if not isinstance(self.matrix, SparseRows):
            return super().largest
        counts = np.diff(self.matrix.rows.indptr)
        first, *more = np.argsort(np.abs(counts - counts.mean()), kind="stable")[:2].tolist()
        return first, (more or [first])[0]

    def read(self, indices: Sequence[int]) -> Tensor:
        """The rows at these places, transformed, in float64."""
        straight = isinstance(indices, range) and indices.step == 1
        found = self.matrix[indices.start : indices.stop] if straight else self.matrix[list(indices)]  # type: ignore[attr-defined]
        return found if isinstance(found, SparseRows) else torch.from_numpy(np.array(found, dtype=np.float64))


class ScikitLearn(Adapter):
    """A fitted estimator: what is done to its inputs, and the module that decides."""

    reads = ("ids",)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whatever is from scikit-learn, or made of its classes, and is no torch module."""
        packages = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
        return "sklearn" in packages and not isinstance(model, nn.Module)

    def __init__(self, model: Any) -> None:
        last = unwrapped(model, Whereabouts())[1]  # what decides
        self.net = Net(last) if is_net(last) else None
        kept = by_columns(last) if self.net is None else {id(last): last}  # whose module will be copied
        self.model = deepcopy(model, kept)  # so that the user's own may be fitted again
        if self.net is None:
            found = opened(self.model)
            self.module, self.before_last = found.module, found.steps  # which are transformers in their order
        else:
            self.module, self.before_last = self.net.module, unwrapped(self.model, Whereabouts())[0]
        self.last = unwrapped(self.model, Whereabouts())[1]
        self.labels: list[Any] = [] if self.net else self.last.classes_.tolist()
        self.classes = self.net.names if self.net else [str(label) for label in self.labels]
        self.name = type(self.last).__name__
        self.render, self.made_by = self.rendered, " or ".join(step_names(self.before_last)) or None
        self.sparse = None if self.net is None else False  # whether rows are held so, as those of the first set

    @property
    def loss(self) -> Any:
        """Of a net of skorch its own; of scikit-learn's estimators the cross entropy."""
        return None if self.net is None else self.net.loss

    @property
    def title(self) -> str:
        """What it is called in errors."""
        return type(self.model).__name__

    @cached_property
    def columns(self) -> Sequence[str] | None:
        """The names of the columns that the model was fitted on, if it knows them."""
        return _names(lambda: self.model.feature_names_in_)

    @cached_property
    def features(self) -> Sequence[str] | None:
        """The names of what the module is fed, as far as the transformers know them."""
        return names_out(self.before_last) if self.before_last else self.columns

    def examples(self, data: Any, what: str) -> Examples:
        """From a pair (X, y), as the estimator's own `fit` takes it."""
        if isinstance(data, Examples):
            self.sparse = isinstance(data.first, SparseRows)
            return data
        if not (isinstance(data, (tuple, list)) and len(data) == 2):
            said = f"The {what} is a {type(data).__name__}."
            raise InputError(f"{said} Pass a pair (X, y): rows and their labels.")
        refuse_masked(tuple(data), f"The {what}")
        given = _watched(data[0])
        rows = self._rows(own(data[0]) if given is None else data[0], what)
        labels = self.numbered(data[1], what)
        if len(labels) != len(rows):
            raise InputError(
                f"The {what} has {len(rows)} rows and {len(labels)} labels. Pass one label per row."
            )
        source = self._transformed(rows, what, self.sparse)
        self.sparse = isinstance(source.matrix, SparseRows)
        self._check(source, what)
        watch = Watch.of(what, () if given is None else given, shared_labels(data[1]), direct=False)
        return Examples(source, labels, rows, watch, self._ids_of(data[0], what))

    def cases(self, x: Any, train: Examples) -> tuple[Tensor, bool]:
        """One row, text or dict, or several of them."""
        refuse_masked(x, "What was passed as cases")
        rows, single = self._cases(x, train)
        sparse = isinstance(train.first, SparseRows)
        return self._transformed(rows, "cases", sparse).read(range(len(rows))), single

    def originals(self, x: Any, train: Examples) -> Container:
        """The cases as they were given, before any transformer."""
        return self._cases(x, train)[0]

    def ids(self, x: Any, train: Examples) -> Sequence[Id] | None:
        """By the column that was said, the index of a frame or a column, or what a row of a frame is called."""
        column, row = self.where.id_column, isinstance(train.originals, Frame) and not is_frame(x)
        if column is not None and (isinstance(x, Mapping) or is_frame(x) or row) and column in x:
            return ids_among(list(x[column]) if is_frame(x) else [x[column]], unique=False)
        return ids_among([getattr(x, "name", None)], unique=False) if row else index_ids(x, unique=False)

    def unknown(self, x: Any, train: Examples, inputs: Inputs) -> Sequence[str]:  # noqa: ARG002
        """Categories and words that were not there when the transformers were fitted."""
        rows, _ = self._cases(x, train)
        found: list[list[str]] = [[] for _ in range(len(rows))]
        given = rows.data
        for step in self.before_last:
            found = [[*own, *more] for own, more in zip(found, unknown(step, given, len(rows)), strict=True)]
            given = step.transform(given)
        return [clipped(" and ".join(each), MOST) for each in found]

    def unnamed(self, label: str, names: Sequence[str] | None) -> str:  # noqa: ARG002
        """Itself: `numbered` says which labels there are."""
        return label

    def numbered(self, labels: Any, what: str = "cases") -> Tensor:
        """The places of the labels among the model's classes [n]."""
        if self.net is not None:
            return self.net.numbered(labels, what)
        given = np.asarray(labels.tolist() if hasattr(labels, "tolist") else labels, dtype=object)
        if given.ndim != 1:
            raise InputError(
                f"The labels of the {what} have the shape {given.shape}. Pass one label per row: a vector."
            )
        places = {name: place for place, name in enumerate(self.labels)}
        try:
            found = list(map(places.get, given.tolist()))
        except TypeError:  # not all can be keys
            found = [places.get(label) if isinstance(label, Hashable) else None for label in given]
        if None in found:
            i = found.index(None)
            near = nearest(given[i], list(map(str, self.labels))) if isinstance(given[i], str) else ""
            raise InputError(
                f"The label of row {i} of the {what} is {given[i]!r}, which the model was not fitted on."
                f"{near} Its classes are: {', '.join(map(repr, self.labels))}."
            )
        return torch.tensor(found, dtype=torch.long)

    def rendered(self, instance: Any) -> Any:
        """A text as it is, anything else as values by column; of sparse rows those that are not zero."""
        if isinstance(instance, (str, Mapping)):
            return instance
        if is_sparse(instance) or isinstance(instance, SparseRows):
            fed = isinstance(instance, SparseRows)
            row = instance.rows if fed else instance.tocsr()
            name = _name(self.features if fed else self.columns, row.shape[1])
            return Entries(zip(map(name, row.indices.tolist()), row.data.tolist(), strict=True))
        values = np.asarray(instance)
        name = _name(self.features if isinstance(instance, Tensor) else self.columns, len(values))
        plain = values.tolist() if values.dtype.kind not in "mM" else list(values)  # dates would be numbers
        return {name(i): value for i, value in enumerate(plain)}

    def _ids_of(self, x: Any, what: str) -> Sequence[Id] | None:
        """What the instances of a set are called: by the column that was said, or by a frame's index."""
        column = self.where.id_column
        if column is None:
            return index_ids(x)
        if not is_frame(x) or column not in x.columns:
            has = f" has the columns {', '.join(map(str, x.columns))}" if is_frame(x) else f" is {a_type(x)}"
            raise InputError(
                f"ids is {column!r}, the name of a column, but the {what}{has}. Pass a frame that has it, or "
                "the ids themselves."
            )
        return checked_ids(x[column], len(x), what)

    def _rows(self, x: Any, what: str) -> Container:
        """With the names of the columns, where the model knows them and an array does not."""
        rows = rows_of(x, what)
        if isinstance(rows, Matrix) and self.columns is not None and rows.data.shape[1] == len(self.columns):
            import pandas as pd

            return Frame(pd.DataFrame(rows.data, columns=list(self.columns)))
        return rows

    def _cases(self, x: Any, train: Examples) -> tuple[Container, bool]:
        if isinstance(x, Examples):  # some of a set that was made here
            if isinstance(x.originals, Chosen):
                return x.originals.originals.chosen(x.originals.indices), False  # type: ignore[attr-defined]
            x = x.take(range(len(x))).inputs
        if isinstance(train.source, Transformed):
            try:
                return train.source.rows.cases(x)
            except InputError as error:
                raise misplaced(self.model, self.last, x, "cases") or error from None
        return self._rows(x, "cases"), False

    def _transformed(self, rows: Container, what: str, sparse: bool | None) -> Transformed:
        """What the last step of the pipeline receives; sparse or not as said, or else as it is smaller."""
        matrix = self._fed(rows.data, what)
        if matrix.shape[0] != len(rows):
            raise InputError(
                f"The {self.title} makes {matrix.shape[0]} rows of the {len(rows)} of the {what}. "
                "A vectorizer takes one column of texts, as frame['text'], not a whole frame."
            )
        return Transformed(_held(matrix, sparse), rows)

    def _fed(self, x: Any, what: str) -> Any:
        from sklearn.utils import check_array

        with self._taking(what, x):
            made = x
            for step in self.before_last:
                made = step.transform(made)
            return check_array(made, accept_sparse="csr", allow_nd=self.net is not None)

    @contextmanager
    def _taking(self, what: str, x: Any) -> Iterator[None]:
        """What scikit-learn says of inputs that it cannot take becomes an error about them."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            said = shorten(str(error), 300) or type(error).__name__
            told = InputError(f"The {self.title} cannot take the {what}: {said}")
            named = (rule(self.title, x, what, str(error)) for rule in (undated, unfilled))
            raise misplaced(self.model, self.last, x, what) or next(filter(None, named), told) from error

    def _check(self, source: Transformed, what: str) -> None:
        """The first rows have the features that they have alone, and the probabilities of `predict_proba`."""
        count = min(TRIED, len(source.rows))
        with self._taking(what, source.rows.data):
            expected = self._expected(source.rows.first(count))
        inputs, alone = source.read(range(count)), self._fed(source.rows.first(1), what)
        first = inputs[:1].to_dense()
        off = (torch.from_numpy(_array(alone).astype(np.float64)) - first).abs()
        if (off > 1e-4 * first.abs() + 1e-6 * first.abs().max()).any():
            raise InputError(
                "The pipeline gives a row other features alone than among others, so that a case has none of "
                "its own. Use transformers that learn in fit and apply it in transform, as StandardScaler does."
            )
        if expected is None:
            assert self.net is not None
            self.output = self.net.looked_at(inputs).place
            return
        with torch.no_grad():
            logits = self.module(inputs)
        vanished = logits.amax(dim=1) < UNDERFLOW
        off = (logits.softmax(dim=1) - torch.tensor(expected, dtype=torch.double)).abs()[~vanished]
        if not (off <= (SAME if expected.dtype == np.float64 else SINGLE)).all():
            raise InputError(
                f"The probabilities of {self.title}.predict_proba are not those that its parameters say: they "
                f"differ by {float(off.max()):.1e}. Pass an estimator of scikit-learn as it was fitted."
            )

    def _expected(self, x: Any) -> "np.ndarray[Any, Any] | None":
        """What `predict_proba` gives for these rows; of a net of skorch none, which is looked at by itself."""
        return None if self.net is not None else np.asarray(self.model.predict_proba(x))


def _held(matrix: Any, sparse: bool | None) -> "SparseRows | np.ndarray[Any, Any]":
    """Sparse rows or an array, as said; not said, a sparse matrix stays one if that takes fewer bytes."""
    if sparse is None:
        index = 0 if not is_sparse(matrix) else matrix.indices.itemsize
        sparse = is_sparse(matrix) and (FLOAT64 + index) * matrix.nnz < FLOAT64 * prod(matrix.shape)
    return SparseRows.of(matrix) if sparse else _array(matrix)


def _watched(x: Any) -> Tensor | None:
    """A tensor over the memory of a user's array or compressed rows; none of anything else."""
    if is_frame(x):  # of which there is a copy
        return None
    return SparseRows(x) if is_sparse(x) and x.format == "csr" and x.dtype.kind in "iuf" else shared(x)


def _array(matrix: Any) -> "np.ndarray[Any, Any]":
    return matrix.toarray() if is_sparse(matrix) else np.asarray(matrix)


def _names(given: Callable[[], Any]) -> list[str] | None:
    """What the function gives, if it can: not every transformer knows names."""
    try:
        return [str(name) for name in given()]
    except (AttributeError, ValueError):  # scikit-learn's error for what is not fitted or has no names is both
        return None


def _name(names: Sequence[str] | None, width: int) -> Callable[[int], str]:
    """The name of a column, or its number."""
    return names.__getitem__ if names is not None and len(names) == width else "x{}".format


scikit_learn = ScikitLearn
