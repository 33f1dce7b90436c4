"""What is indexed: models that were trained for a while, or drawn, and training sets of any size."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks import convolutions as convolutions_of
from benchmarks import encoders
from precedents.zoo.architectures.cnn import cnn
from precedents.zoo.architectures.mobilenet_v2 import mobilenet_v2

Labelled = tuple[Tensor, Tensor]
Given = tuple[nn.Module, Labelled, Tensor]  # a model, its training set, cases
Make = Callable[[int, Path | None], Given]  # how many training instances; the folder of the data sets, if any

BATCH = 128  # of plain passes, and of training
FEW = 32  # of training where a pass is dear
CASES = 20
CHUNK = 8192  # images that are drawn at once
COPIES = 10  # of each row, where there are duplicates


@dataclass(frozen=True)
class IndexWork:
    """What is built, and what is measured of it."""

    title: str
    make: Make
    n: int  # training instances
    metric: str = "cos_grad"
    pieces: int = 1  # in which it is built, each by a call of its own that goes on
    first: bool = False  # whether the first and the second question of a new explainer are asked, too
    dear: bool = False  # a pass takes minutes: none is made that is not needed
    projected: bool = False  # whether others project the same gradients
    files: str | None = None  # the data set whose files it reads if there is a folder of them


class Bytes(nn.Module):
    """Pixels that are kept as bytes become numbers up to one."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return x.float() / 255


class Coloured(nn.Module):
    """Grey pixels in three channels."""

    def forward(self, x: Tensor) -> Tensor:
        """[b, 1, h, w] to [b, 3, h, w]."""
        return x.expand(-1, 3, -1, -1)


class Residual(nn.Module):
    """Two convolutions around which the input goes."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return (x + self.second(self.first(x).relu())).relu()


def resnet() -> nn.Module:
    """About 150,000 parameters, for images of 28 x 28."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, stride=2, padding=1), nn.ReLU(), Residual(32), Residual(32), Residual(32),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(), Residual(64),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def trained(
    model: nn.Module, x: Tensor, y: Tensor, steps: int, rate: float = 2e-3, batch: int = BATCH
) -> nn.Module:
    """By Adam, on drawn batches."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        few = torch.randint(len(x), (batch,))
        loss = functional.cross_entropy(model(x[few]), y[few])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def augmented(n: int, size: int) -> Labelled:
    """Digits of scikit-learn, each turned, shifted and scaled by chance: bytes [n, 1, size, size]."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    base = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    which, found = torch.randint(len(base), (n,)), torch.empty(n, 1, size, size, dtype=torch.uint8)
    for start in range(0, n, CHUNK):
        few = base[which[start : start + CHUNK]]
        angle, scale = 0.25 * torch.randn(len(few)), 1 + 0.1 * torch.randn(len(few))
        turned = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1).reshape(-1, 2, 2)
        moved = torch.cat([turned * scale[:, None, None], 0.15 * torch.randn(len(few), 2, 1)], dim=2)
        grid = functional.affine_grid(moved, [len(few), 1, size, size], align_corners=False)
        drawn = functional.grid_sample(few, grid, align_corners=False)
        drawn += 0.03 * torch.randn_like(drawn)
        found[start : start + CHUNK] = (255 * drawn).clamp_(0, 255).round_().to(torch.uint8)
    return found, torch.tensor(labels)[which]


def readme(n: int, data: Path | None) -> Given:  # noqa: ARG001
    """The model of the README, as it is trained there."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16), torch.tensor(labels)
    model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        functional.cross_entropy(model(x[:n]), y[:n]).backward()
        optimizer.step()
    return model.eval(), (x[:n], y[:n]), x[1000:]


def images(n: int, data: Path | None) -> Given:
    """Images of MNIST, or drawn ones without a folder, and a small ResNet."""
    if data is None:
        x, y = augmented(n + CASES, 28)
        return trained(nn.Sequential(Bytes(), resnet()), x, y, 400), (x[:n], y[:n]), x[n:]
    from precedents.zoo.datasets.mnist import mnist

    found = mnist(data / "mnist")
    parts = [part.take(range(len(part))) for part in (found.train, found.dev) if part is not None]
    x, y = (torch.cat(each) for each in zip(*((part.inputs, part.labels) for part in parts), strict=True))
    assert found.test is not None
    cases = torch.as_tensor(found.test.take(range(CASES)).inputs)
    return trained(resnet(), _square(x), y, 400), (_square(x[:n]), y[:n]), _square(cases)


def _square(x: Tensor) -> Tensor:
    return x.float().reshape(-1, 1, 28, 28)


def convolutions(n: int, data: Path | None) -> Given:  # noqa: ARG001
    """Drawn images of 12 x 12, and the paper's CNN."""
    x, y = augmented(n + CASES, 12)
    model = nn.Sequential(Bytes(), cnn((1, 12, 12), 10))
    return trained(model, x, y, 600), (x[:n], y[:n]), x[n:]


def duplicates(n: int, data: Path | None) -> Given:
    """The same, where every image is there ten times."""
    model, (x, y), cases = convolutions(n // COPIES, data)
    order = torch.arange(COPIES * len(x)) % len(x)
    return model, (x[order], y[order]), cases


def hard(n: int, data: Path | None) -> Given:  # noqa: ARG001
    """Rows without structure, put into 50 classes by a random teacher with noise and learned by heart."""
    x = torch.randn(n + CASES, 64)
    teacher = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 50))
    y = (4 * teacher(x)).softmax(dim=1).multinomial(1).flatten()
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 50))
    return trained(model, x[:n], y[:n], 60 * n // BATCH, 3e-3), (x[:n], y[:n]), x[n:]


def bert(n: int, data: Path | None) -> Given:  # noqa: ARG001
    """BERT's encoder of 22.7 million parameters, trained a little; texts of 24 tokens, a third of the class."""
    x, y = encoders.tokens(n + CASES, 24), torch.randint(6, (n + CASES,))
    own = 1000 * (1 + y[:, None]) + torch.randint(200, x.shape)
    x = torch.where(torch.rand(x.shape) < 1 / 3, own, x)
    return trained(encoders.bert(), x, y, 60, 3e-4, FEW), (x[:n], y[:n]), x[n:]


def deep(n: int, data: Path | None) -> Given:  # noqa: ARG001
    """ResNet-18, trained a little on drawn images of 32 x 32."""
    x, y = augmented(n + CASES, 32)
    model = nn.Sequential(Bytes(), Coloured(), convolutions_of.resnet18())
    return trained(model, x, y, 20, batch=FEW), (x[:n], y[:n]), x[n:]


def mobilenet(n: int, data: Path | None) -> Given:  # noqa: ARG001
    """MobileNetV2 with drawn weights on noise of 32 x 32 pixels."""
    from benchmarks.models import settled

    x = torch.randn(n + CASES, 3, 32, 32)
    model = settled(mobilenet_v2((3, 32, 32), 10, fine=True), x[:64])
    return model, (x[:n], torch.randint(10, (n,))), x[n:]


def hidden(n: int, data: Path | None) -> Given:  # noqa: ARG001
    """Rows of 64 numbers, compared by 512 hidden units: of which only the scan is of interest."""
    centres, y = 2 * torch.randn(10, 64), torch.randint(10, (n + CASES,))
    x = torch.randn(n + CASES, 64) + centres[y]
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
    return trained(model, x, y, 300), (x[:n], y[:n]), x[n:]


WORKS: dict[str, IndexWork] = {
    "readme": IndexWork("README's model, digits", readme, 1000, first=True),
    "mnist": IndexWork("ResNet, 28 x 28 images", images, 60_000, first=True, files="MNIST"),
    "bert": IndexWork("BERT-like, drawn texts", bert, 5000, first=True, dear=True),
    "mobilenet": IndexWork("MobileNetV2, noise", mobilenet, 1000, dear=True),
    "resnet18": IndexWork("ResNet-18, drawn images", deep, 1000, dear=True),
    "hard": IndexWork("MLP, labels by heart", hard, 6000, projected=True),
    "cnn 10,000": IndexWork("CNN, drawn images", convolutions, 10_000, projected=True),
    "cnn 100,000": IndexWork("CNN, drawn images", convolutions, 100_000),
    "cnn 1,000,000": IndexWork("CNN, drawn images", convolutions, 1_000_000, pieces=4),
    "duplicates": IndexWork("CNN, each image ten times", duplicates, 100_000),
    "hidden 1,000,000": IndexWork("512 hidden units, drawn rows", hidden, 1_000_000, "cos_last"),
}
