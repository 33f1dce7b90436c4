import torch
from captum.influence import TracInCP
from torch.utils.data import TensorDataset

torch.save(model.state_dict(), "weights.pt")


def load(network, path):
    network.load_state_dict(torch.load(path))
    return 1.0  # the learning rate of this checkpoint


tracin = TracInCP(
    model,
    TensorDataset(x, y),
    checkpoints=["weights.pt"],
    checkpoints_load_func=load,
    loss_fn=torch.nn.CrossEntropyLoss(reduction="sum"),
    sample_wise_grads_per_batch=True,
    batch_size=100,
)
top = tracin.influence((cases, predicted), k=5).indices
