import torch
from torch.utils.data import DataLoader, TensorDataset
from trak import TRAKer
from trak.projectors import BasicProjector, ProjectionType

parameters = sum(p.numel() for p in model.parameters())
projector = BasicProjector(parameters, 128, seed=0, proj_type=ProjectionType.rademacher, device="cpu")
traker = TRAKer(
    model,
    task="image_classification",
    train_set_size=len(x),
    device="cpu",
    projector=projector,
    proj_dim=128,
    use_half_precision=False,
)
weights = model.state_dict()
traker.load_checkpoint(weights, model_id=0)
for batch in DataLoader(TensorDataset(x, y), 100):
    traker.featurize(batch, num_samples=len(batch[0]))
traker.finalize_features()
traker.start_scoring_checkpoint("digits", weights, model_id=0, num_targets=len(cases))
for batch in DataLoader(TensorDataset(cases, predicted), 100):
    traker.score(batch, num_samples=len(batch[0]))
scores = torch.tensor(traker.finalize_scores("digits"))  # training instances in rows
top = scores.T.topk(5).indices
