"""Work: the repeats of the settings that were asked for, run by an engine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from precedents.metrics.paper import METRICS, metric, name_of
from precedents.reproduction.protocol import Repeat, header
from precedents.reproduction.records import COSTS, Records, log, path_of
from precedents.reproduction.settings import Setting
from precedents.runtime.engines._engine import Engine
from precedents.runtime.engines._find import engine_of
from precedents.runtime.progress import Tell

DAMPINGS = (1e-1, 1e-2, 1e-5, 1e-7, 1e-10)
CURVED = (  # IF, RIF and l2_if
    "dot:gradient/hessian(negative=keep, ",
    "cosine:gradient/hessian(",
    "l2:gradient/hessian(",
)
SIMILARITIES = ("dot", "cosine", "l2")
EVERYWHERE = (  # what is cheap: residuals alone, and the published code's Fisher matrix without its rounding
    "cosine:residual",
    *(f"{each}:gradient/fisher(kind=mean_gradient, damping=1e-10)" for each in SIMILARITIES),
)
DAMPED = tuple(f"{form}damping=1e-10)" for form in CURVED)  # IF, RIF and l2_if with the published damping
ROUNDED = (  # the published code's Fisher matrix with its rounding, which takes the spectrum of the whole
    "dot:gradient/fisher(kind=published, negative=keep, damping=1e-10)",
    *(f"{each}:gradient/fisher(kind=published, damping=1e-10)" for each in SIMILARITIES[1:]),
)
VARIANTS = (
    *EVERYWHERE,
    *ROUNDED,
    *DAMPED,
    *(f"{form}damping={damping})" for form in CURVED for damping in DAMPINGS[:-1]),
    *(f"dot:gradient/fisher(damping={damping})" for damping in DAMPINGS[:-1]),
    "dot:gradient/fisher(kind=true)",
)


@dataclass(frozen=True)
class Task:
    """One repeat of a setting."""

    setting: Setting
    repeat: int
    metrics: tuple[str, ...]
    out: Path
    data: Path | None
    memory: str | None


def tasks(
    settings: Sequence[Setting],
    repeats: Sequence[int],
    out: Path,
    *,
    data: Path | None = None,
    metrics: Sequence[str] | None = None,
    memory: str | None = None,
) -> list[Task]:
    """All repeats of all settings, with their records in the folder `out`.

    `data` is the folder of the data sets; `metrics` names those to try, see `names`; `memory` is what each
    worker may use.
    """
    return [
        Task(setting, repeat, names(setting, metrics), out, data, memory)
        for setting in settings
        for repeat in repeats
    ]


def work(
    tasks: Sequence[Task], engine: str | Engine = "processes(workers=1)", tell: Tell | None = None
) -> Iterator[Task]:
    """Runs every task on an engine; yields each when it is done. What is recorded already is not done again.

    `tell` is given lines with the progress within the repeats.
    """
    chosen = engine_of(engine)
    for task in {(task.out, task.setting.name): task for task in tasks}.values():
        log(task.out / COSTS).mend()
        log(path_of(task.out, task.setting.name)).mend()
        Records.of(task.out, task.setting.name, header(task.setting, task.data))
    for task, _ in chosen.run(done, [_anywhere(task) for task in tasks], tell):
        yield task


def _anywhere(task: Task) -> Task:
    """With folders that are the same wherever a worker is."""
    return replace(task, out=task.out.absolute(), data=None if task.data is None else task.data.absolute())


def names(setting: Setting, metrics: Sequence[str] | None) -> tuple[str, ...]:
    """The metrics by their names or texts: those asked for, or the paper's and what explains differences."""
    tables = ("vehicle", "segment", "digits", "wine", "breast_cancer")
    small = setting.dataset in tables and setting.architecture != "cnn"
    large = list(EVERYWHERE)
    if setting.curvature != "ekfac":  # a matrix of all parameters is affordable
        large += DAMPED
        large += () if setting.architecture == "bi_lstm" else ROUNDED  # and its spectrum
    wanted = [*METRICS, *(VARIANTS if small else large)] if metrics is None else metrics
    return tuple(dict.fromkeys(name_of(metric(each)) for each in wanted))


def done(task: Task) -> None:
    """Runs one repeat, in a worker."""
    records = Records.of(task.out, task.setting.name, header(task.setting, task.data))
    Repeat(task.setting, task.repeat, records, task.data, task.memory).run(task.metrics)
