"""Settings: the data sets and models that the metrics are compared on, the paper's thirteen among them."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from precedents.errors import InputError, UnknownNameError
from precedents.runtime.given import whole_number

CASES = 500
MOST = 10**6  # repeats


@dataclass(frozen=True)
class Setting:
    """A data set with a model, and how the model is trained."""

    dataset: str
    model: str  # as the paper calls it
    architecture: str
    epochs: int = 100
    pretraining: int = 0  # epochs on all that may be trained on, before the repeat's own share
    decay: float = 0.0  # AdamW's
    moved: bool = False  # whether images to train on are moved and mirrored
    cooled: bool = False  # whether the learning rate falls to zero over the second half
    curvature: Literal["exact", "gauss_newton", "ekfac"] = "exact"  # the Hessian of IF, RIF, l2_if
    standardized: bool = False  # whether the columns of a table are
    published: bool = True

    @property
    def name(self) -> str:
        """As it is written on the command line."""
        return f"{self.dataset}/{self.model}"

    @property
    def protocol(self) -> dict[str, Any]:
        """What the records rest on, as plain values; `cooled` only where it holds, as older ones lack it."""
        left = ("dataset", "model", "published", *(() if self.cooled else ("cooled",)))
        return {key: value for key, value in asdict(self).items() if key not in left} | {"cases": CASES}


def _settings() -> Iterator[Setting]:
    """Vehicle and Segment are unscaled, as in the paper, so their models need thousands of epochs."""
    yield Setting("mnist", "cnn", "cnn", curvature="gauss_newton")
    yield Setting("mnist", "logreg", "logistic_regression")
    yield Setting(
        "cifar10",
        "mobilenetv2",
        "mobilenet_v2",
        epochs=10,
        pretraining=12,
        decay=0.01,
        moved=True,
        cooled=True,
        curvature="ekfac",
    )
    yield Setting("cifar10", "cnn", "cnn", epochs=30, pretraining=40, cooled=True, curvature="gauss_newton")
    yield Setting("cifar10", "logreg", "logistic_regression", epochs=30, pretraining=12, curvature="ekfac")
    yield Setting("trec", "bilstm", "bi_lstm", curvature="gauss_newton")
    yield Setting("trec", "logreg", "bag_of_words")
    yield Setting("agnews", "bilstm", "bi_lstm", curvature="gauss_newton")
    yield Setting("agnews", "logreg", "bag_of_words")
    for dataset in ("vehicle", "segment"):
        yield Setting(dataset, "mlp", "mlp", epochs=5000)
        yield Setting(dataset, "logreg", "logistic_regression", epochs=5000)
    for dataset in ("digits", "wine", "breast_cancer"):
        table = dataset != "digits"
        yield Setting(dataset, "logreg", "logistic_regression", standardized=table, published=False)
        yield Setting(dataset, "mlp", "mlp", standardized=table, published=False)
    yield Setting("digits", "cnn", "cnn", curvature="gauss_newton", published=False)


SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _settings()}


def chosen(text: str | None, epochs: int | None = None) -> list[Setting]:
    """The settings that a text such as `vehicle/logreg,segment/*` names; the paper's without a text."""
    if text is None:
        found = [setting for setting in SETTINGS.values() if setting.published]
    else:
        found = []
        for name in filter(None, (part.strip() for part in text.split(","))):
            dataset, _, model = name.partition("/")
            several = model in ("", "*")
            here = [s for s in SETTINGS.values() if (s.dataset == dataset if several else s.name == name)]
            if not here:
                raise UnknownNameError("setting", name, list(SETTINGS))
            found += [setting for setting in here if setting not in found]
    if epochs is not None:
        whole_number(epochs, "epochs")
    if not found:
        raise InputError(f"--settings is {text!r}. Name some, as vehicle/logreg,segment/mlp.")
    return (
        found
        if epochs is None
        else [replace(s, epochs=epochs, pretraining=min(s.pretraining, epochs)) for s in found]
    )


def counted(text: str) -> range:
    """The repeats that a text names: 10 for the first ten, 3-5 for those from 3 to 5."""
    first, dash, last = (part.strip() for part in text.partition("-"))
    try:
        places = range(int(first), int(last) + 1) if dash else range(int(first))
    except ValueError:
        places = range(0)
    if not places or places.start < 0 or places.stop > MOST:
        raise InputError(f"--repeats is {text!r}. Write how many, as 10, or which, as 3-5.")
    return places
