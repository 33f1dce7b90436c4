"""Wide convolutional networks as people have them: residual blocks, bottlenecks, depthwise kernels."""

import torch
from torch import Tensor, nn

CLASSES = 10


def _normalized(i: int, o: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(o)]


class Residual(nn.Module):
    """A body and what goes past it, which a convolution changes where the shapes differ."""

    def __init__(self, i: int, o: int, stride: int, body: list[nn.Module]) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)
        self.past = nn.Sequential(*(_normalized(i, o, 1, stride) if stride > 1 or i != o else []))

    def forward(self, x: Tensor) -> Tensor:
        """[b, i, h, w] to [b, o, h / stride, w / stride]."""
        return torch.relu(self.body(x) + self.past(x))


def block(i: int, o: int, stride: int) -> nn.Module:
    """Two convolutions."""
    return Residual(i, o, stride, [*_normalized(i, o, 3, stride), nn.ReLU(), *_normalized(o, o, 3)])


def bottleneck(i: int, width: int, stride: int) -> nn.Module:
    """A convolution between two that change the number of channels."""
    wide = [*_normalized(i, width, 1), nn.ReLU(), *_normalized(width, width, 3, stride), nn.ReLU()]
    return Residual(i, 4 * width, stride, [*wide, *_normalized(width, 4 * width, 1)])


def _headed(layers: list[nn.Module], width: int) -> nn.Module:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))


def resnet18() -> nn.Module:
    """As for 32 x 32 pixels: 11.2 million parameters."""
    layers = [*_normalized(3, 64, 3), nn.ReLU()]
    for i, o, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        layers += [block(i, o, stride), block(o, o, 1)]
    return _headed(layers, 512)


def resnet50() -> nn.Module:
    """As for ImageNet: 23.5 million parameters."""
    layers, i = [*_normalized(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(count):
            layers.append(bottleneck(i, width, stride if k == 0 else 1))
            i = 4 * width
    return _headed(layers, i)


class ConvNeXtBlock(nn.Module):
    """A depthwise convolution of 7 x 7, two linear layers at each position, and a scale for each channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.inner = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        """[b, width, h, w] to the same shape."""
        inner = self.inner(self.depthwise(x).permute(0, 2, 3, 1)) * self.scale
        return x + inner.permute(0, 3, 1, 2)


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of [b, c, h, w]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """[b, c, h, w] to the same shape."""
        normalized: Tensor = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return normalized


def convnext() -> nn.Module:
    """ConvNeXt-T: 27.8 million parameters."""
    layers: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96)]
    for width, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        layers += [] if width == 96 else [ChannelNorm(width // 2), nn.Conv2d(width // 2, width, 2, 2)]
        layers += [ConvNeXtBlock(width) for _ in range(count)]
    return _headed([*layers, ChannelNorm(768)], 768)
