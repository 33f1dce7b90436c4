"""Located: the gradient of one instance's loss, position by position, from one pass forward and back."""

from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.batch import Batch
from precedents.gradients.gradients import loss_gradients, planned
from precedents.gradients.instrumentation import instrumented
from precedents.gradients.recording import Recording
from precedents.gradients.rows import Rows
from precedents.gradients.sites import OpenParts, Sites, joined
from precedents.runtime.cache import Slot

SITED: Slot[Recording] = Slot("recording with positions in the open")


@dataclass(frozen=True, eq=False)
class Located:
    """The gradient of one instance's loss, parameter by parameter; what it does not use is left out."""

    sites: dict[str, Sites]  # by the parameter's name; divided by the length of the residual
    length: float  # of the residual
    rows: Rows  # the same gradient as the metrics have it

    @property
    def bytes(self) -> int:
        """What the sites take."""
        return sum(each.bytes for each in self.sites.values())


@torch.inference_mode(mode=False)
def located(model: Classifier, batch: Batch, *, divided: bool = True, held: int = 0) -> Located:
    """Of a batch of one instance; without `divided`, and where no pass can be recorded, formed as a whole.

    `held` is how many bytes of another one are held beside it: what the budget has no room for is refused.
    """
    plan, rows = planned(model), loss_gradients(model, batch)
    if plan.recording is None or not divided:
        return Located(_formed(model, rows), float(rows.scale[0]), rows)
    recording = model.cache.once(SITED, lambda: instrumented(model, like=plan.recording, sited=True))
    lengths: list[float] = []

    def units(logits: Tensor) -> list[Tensor]:
        each = model.loss.residuals(model.checked_logits(logits, batch.indices), batch.labels)
        length = each.norm(dim=1)
        lengths.append(float(length[0]))
        return [torch.where(length[:, None] > 0, each / length[:, None], 0.0).to(logits)]

    opened = next(recording.passes(batch.inputs, units, lambda: OpenParts(model.budget, held)))
    names = {id(parameter): name for name, parameter in model.parameters.items()}
    found = {names[key]: joined(several) for key, several in opened.found.items() if key in names}
    turned = {name: each.turned() if name.endswith("_reverse") else each for name, each in found.items()}
    if plan.rest:
        turned |= {name: each for name, each in _formed(model, rows).items() if name in plan.rest}
    return Located({name: turned[name] for name in model.parameters if name in turned}, lengths[0], rows)


def _formed(model: Classifier, rows: Rows) -> dict[str, Sites]:
    """Each parameter as one sum of all positions, divided by the length of the residual."""
    dense, start, found = rows.dense()[:1], 0, {}
    dense = torch.where(rows.scale[:1, None] > 0, dense / rows.scale[:1, None], 0.0)
    for name, parameter in model.parameters.items():
        stop = start + parameter.numel()
        found[name] = Sites.whole(parameter, dense[:, start:stop])
        start = stop
    return found
