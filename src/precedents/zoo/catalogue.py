"""The data sets and the architectures by name."""

from collections.abc import Callable

from torch import nn

from precedents.registry import Registry
from precedents.zoo import architectures, datasets
from precedents.zoo.dataset import Load

Build = Callable[[tuple[int, ...], int], nn.Module]  # a data set's shape, the number of classes -> a model

DATASETS: Registry[Load] = Registry("data set", datasets)
ARCHITECTURES: Registry[Build] = Registry("architecture", architectures)
