import torch
from kronfluence.analyzer import Analyzer, prepare_model
from kronfluence.task import Task
from torch.utils.data import TensorDataset


class Digits(Task):
    def compute_train_loss(self, batch, model, sample=False):
        images, labels = batch
        logits = model(images)
        if sample:
            labels = torch.multinomial(logits.detach().softmax(dim=1), 1).flatten()
        return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")

    def compute_measurement(self, batch, model):
        return self.compute_train_loss(batch, model)


train, asked = TensorDataset(x, y), TensorDataset(cases, predicted)
analyzer = Analyzer("digits", prepare_model(model, Digits()), Digits(), cpu=True)
analyzer.fit_all_factors("ekfac", train, per_device_batch_size=100)
analyzer.compute_pairwise_scores(
    "scores",
    factors_name="ekfac",
    query_dataset=asked,
    train_dataset=train,
    per_device_query_batch_size=100,
    per_device_train_batch_size=100,
)
top = analyzer.load_pairwise_scores("scores")["all_modules"].topk(5).indices
