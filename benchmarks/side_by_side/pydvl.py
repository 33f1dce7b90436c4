import torch
from pydvl.influence.torch import DirectInfluence
from torch.utils.data import DataLoader, TensorDataset

influence = DirectInfluence(model, torch.nn.functional.cross_entropy, regularization=0.1)
influence.fit(DataLoader(TensorDataset(x, y), batch_size=1000))
scores = influence.influences(cases, predicted, x, y)
top = scores.topk(5).indices
