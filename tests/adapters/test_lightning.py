"""Lightning: a module with its data module, or a Trainer alone; whatever it logs and however it loads."""

import warnings

import pytest
import torch
from plain import cosines
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

import precedents as pr

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning
    import pytorch_lightning as pl

X = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
Y = torch.arange(30) % 3
TEST = X[:6] + 0.1, Y[:6]
QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


class Lit(pl.LightningModule):
    """Logs wherever it can."""

    def __init__(self, **loss) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(), nn.Linear(8, 3))
        self.criterion = nn.CrossEntropyLoss(**loss)

    def forward(self, x: Tensor) -> Tensor:
        logits = self.net(x)
        self.log("largest", logits.max())
        self.log_dict({"smallest": logits.min()})
        return logits

    def training_step(self, batch, index: int) -> Tensor:
        loss = self.criterion(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Data(pl.LightningDataModule):
    """Has nothing before it is set up, and shuffles."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    def prepare_data(self) -> None:
        self.called.append("prepare_data")

    def setup(self, stage: str) -> None:
        self.called.append(stage)
        self.own, self.held = TensorDataset(X, Y), TensorDataset(*TEST)

    def train_dataloader(self):
        return DataLoader(self.own, batch_size=8, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.held, batch_size=8)


def made(kind=Lit, *args, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind(*args, **options)


def fitted(*data) -> pl.Trainer:
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Lightning, about workers and loggers
        torch.manual_seed(0)
        trainer = pl.Trainer(max_epochs=1, **QUIET)
        trainer.fit(Lit(), *data)
    return trainer


@pytest.fixture(scope="module")
def trainer() -> pl.Trainer:
    return fitted(Data())


def test_a_module_with_its_datamodule_has_the_scores_of_plain_autograd() -> None:
    module, data = made(), Data()
    found = pr.Explainer(module, data).scores(X[:5], labels=Y[:5])
    torch.testing.assert_close(found, cosines(module.net, X, Y)[:5], rtol=0, atol=1e-6)
    assert data.called == ["prepare_data", "fit"]
    pr.Explainer(module, data)
    assert data.called == ["prepare_data", "fit"]  # it is set up already


def test_a_trainer_alone_is_enough(trainer, tmp_path) -> None:
    module, data = trainer.lightning_module, trainer.datamodule
    called, mode = list(data.called), module.training
    explainer = pr.Explainer(trainer)
    assert torch.equal(explainer.scores(X[:4]), pr.Explainer(module.net, (X, Y)).scores(X[:4]))
    assert torch.equal(explainer.scores(X[:4]), pr.Explainer(module).scores(X[:4]))
    assert (data.called, module.training, module.trainer) == (called, mode, trainer)
    explanation = explainer.explain(X[0], k=2)
    assert str(explanation).startswith("predicted")
    assert explanation.to_json()
    explanation.plot()
    explainer.save(tmp_path / "kept")
    assert torch.equal(pr.Explainer.load(tmp_path / "kept", trainer).scores(X[:4]), explainer.scores(X[:4]))
    audit = pr.audit(trainer, metrics=["cos_grad", "cos_last"])
    assert audit.recommendation is not None
    assert (explainer.subject.name, [tap.module for tap in explainer.subject.classifier.taps]) == (
        "Lit",
        ["net.4"],
    )


def test_a_trainer_that_was_given_a_loader_has_its_data_set_in_order() -> None:
    trainer = fitted(DataLoader(TensorDataset(X, Y), batch_size=7, shuffle=True))
    explainer = pr.Explainer(trainer)
    assert explainer.subject.train.labels.tolist() == Y.tolist()
    assert torch.equal(explainer.scores(X[0]), pr.Explainer(trainer.lightning_module.net, (X, Y)).scores(X[0]))
    with pytest.raises(pr.InputError, match="There is no test set"):
        pr.audit(trainer)


class Stacking(Data):
    """With a collate_fn of its own, which pads."""

    def train_dataloader(self):
        return DataLoader(
            [(row, int(label)) for row, label in zip(X, Y, strict=True)],
            batch_size=8,
            shuffle=True,
            collate_fn=lambda items: (torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])),
        )


class Drawing(Data):
    """Draws some classes more often."""

    def train_dataloader(self):
        return DataLoader(self.own, batch_size=8, sampler=WeightedRandomSampler(torch.ones(30), 50))


@pytest.mark.parametrize("kind", [Data, Stacking, Drawing])
@pytest.mark.parametrize("wrap", [lambda module: module, lambda module: module.net], ids=["lightning", "plain"])
def test_instances_are_in_the_order_of_the_data_set(kind, wrap) -> None:
    explainer = pr.Explainer(wrap(made()), kind())
    assert explainer.subject.train.labels.tolist() == Y.tolist()
    torch.testing.assert_close(explainer.scores(X[0]), pr.Explainer(made().net, (X, Y)).scores(X[0]))


class Loading(Lit):
    """Has its own loader."""

    def train_dataloader(self):
        return DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True)


def test_a_module_with_a_loader_of_its_own_needs_nothing_else() -> None:
    assert len(pr.Explainer(made(Loading)).subject.train) == 30


def test_the_loss_that_a_module_holds_is_its_loss() -> None:
    weight = torch.tensor([1.0, 2.0, 3.0])
    module = made(Lit, weight=weight, label_smoothing=0.1)
    found = pr.Explainer(module, Data()).scores(X[:5], labels=Y[:5])
    wanted = cosines(module.net, X, Y, nn.CrossEntropyLoss(weight=weight, label_smoothing=0.1, reduction="sum"))
    torch.testing.assert_close(found, wanted[:5], rtol=0, atol=1e-6)


class OneLogit(Lit):
    """For two classes."""

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)[:, 0]

    def training_step(self, batch, index: int) -> Tensor:
        return binary_cross_entropy_with_logits(self(batch[0]), batch[1].float())


def test_one_logit_is_enough_for_two_classes() -> None:
    assert pr.Explainer(made(OneLogit), (X, Y % 2)).scores(X[0]).shape == (1, 30)


class Features(Lit):
    """Its forward is not the classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 3)

    def training_step(self, batch, index: int) -> Tensor:
        return cross_entropy(self.head(self(batch[0])), batch[1])


class Penalised(Lit):
    """Its loss is not of the instances alone."""

    def training_step(self, batch, index: int) -> Tensor:
        return super().training_step(batch, index) + sum(p.abs().sum() for p in self.parameters())


class Forwardless(pl.LightningModule):
    """All is done by training_step."""

    def __init__(self) -> None:
        super().__init__()
        self.quiet, self.body = nn.Identity(), nn.Linear(5, 3)

    def training_step(self, batch, index: int) -> Tensor:
        return cross_entropy(self.body(batch[0]), batch[1])


class Unreachable(Data):
    """Cannot be set up."""

    def setup(self, stage: str) -> None:
        raise FileNotFoundError("nothing here")


class Several(Data):
    """Two loaders at once."""

    def train_dataloader(self):
        return [super().train_dataloader()] * 2


REFUSED = {
    r"Features.training_step .* not the cross entropy .* forward returns no logits, pass the part": (
        Features,
        Data,
    ),
    r"Penalised.training_step .* loss=torch.nn.CrossEntropyLoss": (Penalised, Data),
    r"Forwardless has no forward.*pr.Explainer\(model.body, datamodule\)": (Forwardless, Data),
    r"Unreachable.setup failed: FileNotFoundError: nothing here \(test_lightning.py, line \d+\)": (
        Lit,
        Unreachable,
    ),
    r"Several.train_dataloader gives a list of several loaders": (Lit, Several),
    r"LightningDataModule has no train_dataloader": (Lit, pl.LightningDataModule),
    r"There is no training set, and only a Trainer brings one along": (Lit, lambda: None),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_explained_is_refused_in_a_line_that_names_the_users_code(words) -> None:
    module, data = (make() for make in REFUSED[words])
    with pytest.raises(pr.PrecedentsError, match=words) as refused:
        pr.Explainer(module, data)
    assert "\n" not in str(refused.value)


def test_a_trainer_without_a_model_is_refused_with_what_to_type() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        empty = pl.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    with pytest.raises(pr.InputError, match=r"no model. Call trainer.fit\(model, datamodule\)"):
        pr.Explainer(empty)


def test_the_loss_of_padded_batches_is_tried_too() -> None:
    with pytest.raises(pr.InputError, match=r"Penalised.training_step computes is not the cross entropy"):
        pr.Explainer(made(Penalised), Stacking())
    weighted = made(Lit, weight=torch.tensor([1.0, 2.0, 3.0]))
    found = pr.Explainer(weighted, Stacking()).scores(X[0])
    torch.testing.assert_close(found, pr.Explainer(weighted, Data()).scores(X[0]))


class Scheduled(Penalised):
    """Needs its Trainer at every step."""

    def training_step(self, batch, index: int) -> Tensor:
        self.lr_schedulers().step()
        return super().training_step(batch, index)


class Manual(Penalised):
    """Makes its steps itself."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False


class Silent(Lit):
    """Gives no loss."""

    def training_step(self, batch, index: int) -> None:
        """Nothing."""


@pytest.mark.parametrize("data", [Data, Stacking])
@pytest.mark.parametrize(
    ("kind", "why"), [(Scheduled, r"RuntimeError: .*Trainer"), (Manual, "by itself"), (Silent, "a NoneType")]
)
def test_a_training_step_that_cannot_be_tried_is_named(kind, why, data) -> None:
    with pytest.warns(UserWarning, match=rf"{kind.__name__}.training_step could not be tried: .*{why}"):
        pr.Explainer(made(kind), data())
    pr.Explainer(made(kind), data(), loss=nn.CrossEntropyLoss())  # and says nothing


def test_a_loss_that_is_said_is_not_compared_with_training_step() -> None:
    module = made(Penalised)
    assert torch.equal(
        pr.Explainer(module, Data(), loss=nn.CrossEntropyLoss()).scores(X[0]),
        pr.Explainer(module.net, (X, Y)).scores(X[0]),
    )


class Writing(Lit):
    """Counts its steps in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(1))

    def training_step(self, batch, index: int) -> Tensor:
        self.steps += 1
        return super().training_step(batch, index)


def test_a_trial_of_training_step_leaves_the_module_as_it_was() -> None:
    module = made(Writing)
    module.train()
    state = torch.random.get_rng_state()
    pr.Explainer(module, Data())
    assert (float(module.steps), module.training) == (0.0, True)
    assert torch.equal(torch.random.get_rng_state(), state)


class OtherLit(lightning.LightningModule):
    """Of the package `lightning`, which has classes of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def training_step(self, batch, index: int) -> Tensor:
        return cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class OtherData(lightning.LightningDataModule):
    def train_dataloader(self) -> DataLoader:
        return DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True)


def test_both_packages_of_lightning_are_recognised() -> None:
    module, data = OtherLit(), OtherData()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(max_epochs=1, **QUIET)
        trainer.fit(module, data)
    labels = module.net(X[:2]).argmax(dim=1)
    x, y = torch.cat([X[:2], X]), torch.cat([labels, Y])
    wanted = cosines(module.net, x, y)[:2, 2:]
    for explainer in (pr.Explainer(trainer), pr.Explainer(module, data)):
        torch.testing.assert_close(explainer.scores(X[:2]), wanted, rtol=0, atol=1e-6)
    with pytest.raises(pr.InputError, match="LightningDataModule has no train_dataloader"):
        pr.Explainer(module.net, lightning.LightningDataModule())
