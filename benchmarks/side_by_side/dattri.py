import torch
from dattri.algorithm.tracin import TracInAttributor
from dattri.task import AttributionTask
from torch.func import functional_call
from torch.utils.data import DataLoader, TensorDataset


def loss(parameters, instance):
    image, label = instance
    logits = functional_call(model, parameters, image[None])
    return torch.nn.functional.cross_entropy(logits, label[None])


task = AttributionTask(loss_func=loss, model=model, checkpoints=model.state_dict())
attributor = TracInAttributor(task, weight_list=torch.ones(1), normalized_grad=True)
attributor.projector_kwargs = None  # otherwise gradients are projected to 512 dimensions
with torch.no_grad():
    scores = attributor.attribute(
        DataLoader(TensorDataset(x, y), 100), DataLoader(TensorDataset(cases, predicted), 100)
    )
top = scores.T.topk(5).indices
