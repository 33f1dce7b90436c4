"""MobileNetV2 (Sandler et al., 2018) for 32 x 32 images: the paper's table, row by row."""

from torch import Tensor, nn

# expansion, channels, blocks, stride of the first block; the stem has stride 2 in the paper, whose images are
# 224 x 224
TABLE = (
    (1, 16, 1, 1),  # [b, 16, 32, 32]
    (6, 24, 2, 2),  # [b, 24, 16, 16]
    (6, 32, 3, 2),  # [b, 32, 8, 8]
    (6, 64, 4, 2),  # [b, 64, 4, 4]
    (6, 96, 3, 1),  # [b, 96, 4, 4]
    (6, 160, 3, 2),  # [b, 160, 2, 2]
    (6, 320, 1, 1),  # [b, 320, 2, 2]
)
STEM, LAST = 32, 1280


def mobilenet_v2(shape: tuple[int, ...], classes: int, *, fine: bool = False) -> nn.Module:
    """For images [channels, 32, 32]; 2.2 million parameters.

    A fine one has stride 1 in the second row too: each side is twice as long from there on, and the work five
    times as much.
    """
    layers: list[nn.Module] = [convolution(shape[0], STEM, size=3), nn.ReLU6(inplace=True)]  # [b, 32, 32, 32]
    channels = STEM
    for row, (expansion, width, blocks, stride) in enumerate(TABLE):
        first = 1 if fine and row == 1 else stride
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, expansion, first if block == 0 else 1))
            channels = width
    layers += [convolution(channels, LAST, size=1), nn.ReLU6(inplace=True)]  # [b, 1280, 2, 2]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(LAST, classes))


class Bottleneck(nn.Module):
    """Widen by 1 x 1, filter each channel by 3 x 3, narrow by 1 x 1; added to the input where shapes agree."""

    def __init__(self, channels: int, width: int, expansion: int, stride: int) -> None:
        super().__init__()
        inner = channels * expansion
        widen = [convolution(channels, inner, size=1), nn.ReLU6(inplace=True)] if expansion > 1 else []
        self.layers = nn.Sequential(
            *widen,
            convolution(inner, inner, size=3, stride=stride, groups=inner),
            nn.ReLU6(inplace=True),
            convolution(inner, width, size=1),
        )
        self.residual = stride == 1 and channels == width

    def forward(self, x: Tensor) -> Tensor:
        """[b, channels, h, w] to [b, width, h / stride, w / stride]."""
        return x + self.layers(x) if self.residual else self.layers(x)


def convolution(channels: int, width: int, size: int, stride: int = 1, groups: int = 1) -> nn.Module:
    """A convolution without bias, and batch normalization."""
    padding = size // 2
    return nn.Sequential(
        nn.Conv2d(channels, width, size, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(width),
    )
