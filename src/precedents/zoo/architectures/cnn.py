"""The paper's CNN: six 3 x 3 convolutions of 16 channels, pooled after each two, averaged, one linear layer."""

from torch import nn


def cnn(shape: tuple[int, ...], classes: int, width: int = 16) -> nn.Module:
    """For images [channels, height, width] of at least 8 x 8; 12 thousand parameters."""
    layers: list[nn.Module] = []
    channels = shape[0]
    for _ in range(3):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]  # [b, 16, h, w]
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]  # [b, 16, h/2, w/2]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))
