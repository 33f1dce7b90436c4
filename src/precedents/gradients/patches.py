"""Patched: the gradients of a convolution's kernel, from what came back and the patches that the kernel met.

To form one is a product of the two, with the patches laid out for a few instances at a time. Two are compared
without forming them where positions are few. The inner product of two patches is a sum over the kernel of inner
products of pixels, so that not even the patches are needed: those of the pixels are summed along the kernel.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import torch
from torch import Tensor
from torch.nn.functional import pad

from precedents.gradients.factors import FORMING, OVERHEAD, Outer, filled
from precedents.runtime.buffers import BUFFERS

PATCH_NUMBERS = 2**20  # of patches that are laid out at once to be formed,
MORE_NUMBERS = 2**22  # and to be compared
PIXEL_PAIRS = 2**20  # inner products of pixels that are held at once
SUMMING = 24  # what it costs to add a number of another place, by what a multiplication costs


@dataclass(frozen=True)
class Window:
    """Where a kernel meets its inputs: one number for each axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]  # zeros before the first pixel,
    after: tuple[int, ...]  # and after the last

    def offsets(self) -> Iterator[tuple[int, ...]]:
        """The first pixel that each entry of the kernel meets: before the first one, where that is negative."""
        entries = product(*map(range, self.kernel))
        return (
            tuple(e * d - b for e, d, b in zip(entry, self.dilation, self.before, strict=True))
            for entry in entries
        )

    def met(
        self, offset: Sequence[int], out: Sequence[int], pixels: Sequence[int]
    ) -> list[tuple[slice, slice]]:
        """Along each axis, the positions at which an entry of the kernel meets a pixel, and these pixels."""
        found = []
        for first, step, o, q in zip(offset, self.stride, out, pixels, strict=True):
            start, stop = max(0, -(first // step)), min(o, (q - 1 - first) // step + 1)
            stop = max(start, stop)
            pixel = first + start * step
            found.append((slice(start, stop), slice(pixel, pixel + (stop - start) * step, step)))
        return found


@dataclass(frozen=True, eq=False)
class Patched:
    """The gradient of a kernel [o, c, ...] as a sum over positions of outer products with patches.

    The first axis after the channels is that of the layer's calls.
    """

    parameter: Tensor
    back: Tensor  # [b, o, calls, *positions]
    received: Tensor  # [b, c, calls, *pixels]
    window: Window  # with the axis of the calls, along which the kernel has length one

    @classmethod
    def of(cls, parameter: Tensor, back: Tensor, received: Tensor, window: Window) -> "Patched":
        """Of one call."""
        w = window
        one = Window((1, *w.kernel), (1, *w.stride), (1, *w.dilation), (0, *w.before), (0, *w.after))
        return cls(parameter, back[:, :, None], received[:, :, None], one)

    def __len__(self) -> int:
        return len(self.back)

    @property
    def is_cheaper(self) -> bool:
        """By counting: multiplications for each pair of instances, and the forming."""
        return min(self._by_pixels, self._by_patches) + OVERHEAD < FORMING * self.parameter.numel()

    @property
    def _by_pixels(self) -> int:
        """What a pair costs by inner products of pixels: q q c and t t o, and sums along the kernel."""
        t, q = prod(self.back.shape[2:]), prod(self.received.shape[2:])
        o, c, *kernel = self.parameter.shape
        return q * q * c + t * t * (o + SUMMING * prod(kernel))

    @property
    def _by_patches(self) -> int:
        """What a pair costs by inner products of patches: t t (o + i)."""
        o = len(self.parameter)
        return prod(self.back.shape[2:]) ** 2 * (o + self.parameter.numel() // o)

    @property
    def stored(self) -> int:
        """What came back and what was received."""
        return prod(self.back.shape[1:]) + prod(self.received.shape[1:])

    @property
    def laid_out_bytes(self) -> int:
        """What its patches take once they are laid out."""
        positions, o = prod(self.back.shape[2:]), len(self.parameter)
        return len(self) * positions * (o + self.parameter.numel() // o) * self.back.element_size()

    def outer(self) -> Outer:
        """The same with its patches laid out."""
        patches = laid_out(self.received, self.window, self.back.shape[2:])
        return Outer(self.parameter, self.back.flatten(2).transpose(1, 2), patches.transpose(1, 2))

    def formed(self) -> Tensor:
        """The sums of outer products."""
        b, shape = len(self), self.parameter.shape
        target = BUFFERS.like(self.back, b, self.parameter.numel())
        self.form(target)
        return target.reshape(b, *shape)

    def form(self, target: Tensor) -> None:
        """Writes the sums of outer products to the target, the patches of a few instances at a time."""
        start = 0
        for few in self._laid_out(PATCH_NUMBERS):
            stop = start + len(few.left)
            few.form(target[start:stop])
            start = stop

    def products(self, other: "Patched") -> Tensor:
        """By pixels or by patches, whichever is cheaper; some of the instances at a time."""
        if self._by_patches <= self._by_pixels:
            return torch.cat([_row(few, other._laid_out(MORE_NUMBERS)) for few in self._laid_out(MORE_NUMBERS)])
        pairs = prod(self.received.shape[2:]) * prod(other.received.shape[2:]) * len(other)
        size = max(1, PIXEL_PAIRS // max(1, pairs))
        return torch.cat([few._pixel_products(other) for few in self._pieces(size)])

    def _pixel_products(self, other: "Patched") -> Tensor:
        """Inner products of pixels, summed along the kernel, and of what came back; the instances come last."""
        backs = _gram(self.back, other.back)  # [*positions, a, *other positions, b]
        pixels = _gram(self.received, other.received)
        patches = torch.zeros_like(backs)
        axes = len(self.window.kernel)
        every = slice(None)
        for offset in self.window.offsets():
            mine = self.window.met(offset, self.back.shape[2:], self.received.shape[2:])
            theirs = self.window.met(offset, other.back.shape[2:], other.received.shape[2:])
            to, of = ((*(p[i] for p in mine), every, *(p[i] for p in theirs), every) for i in (0, 1))
            patches[to] += pixels[of]
        return backs.mul_(patches).sum(dim=(*range(axes), *range(axes + 1, 2 * axes + 1)))

    def squares(self) -> Tensor:
        """The squared lengths, by the patches of each instance."""
        return torch.cat([few.squares() for few in self._laid_out(PATCH_NUMBERS)])

    def _laid_out(self, numbers: int) -> Iterator[Outer]:
        """Some instances after the other, whose patches have no more than so many numbers, or one of them."""
        each = prod(self.back.shape[2:]) * self.parameter.numel() // len(self.parameter)
        size = max(1, numbers // max(1, each))
        return (few.outer() for few in self._pieces(size))

    def _pieces(self, size: int) -> Iterator["Patched"]:
        """So many instances after the other."""
        return (self._between(start, start + size) for start in range(0, max(1, len(self)), size))

    def _between(self, start: int, stop: int) -> "Patched":
        return self.changed(lambda values: values[start:stop])

    def changed(self, function: Callable[[Tensor], Tensor]) -> "Patched":
        """With what came back and what was received changed."""
        return Patched(self.parameter, function(self.back), function(self.received), self.window)

    def gathered(self, b: int) -> "Patched":
        """With each of b instances's rows as calls."""
        return self.changed(lambda values: values.unflatten(0, (b, -1)).transpose(1, 2).flatten(2, 3))

    @classmethod
    def summed(cls, parts: Sequence["Patched"], parameter: Tensor, b: int) -> "Patched":
        """The gradients of several calls of a layer, or of none, as those of one with all their calls."""
        if parts:
            return _joined(parts, dim=2)
        o, c, *kernel = parameter.shape
        axes = len(kernel) + 1
        none, one = (0,) * axes, (1,) * axes
        window = Window((1, *kernel), one, one, none, none)
        return cls(parameter, parameter.new_zeros(b, o, *none), parameter.new_zeros(b, c, *none), window)


def _row(few: Outer, others: Iterable[Outer]) -> Tensor:
    return torch.cat([few.products(other) for other in others], dim=1)


def laid_out(x: Tensor, window: Window, out: Sequence[int]) -> Tensor:
    """What each entry of the kernel met at each position of the output [b, c x kernel, positions]."""
    around = [n for pair in zip(window.after, window.before, strict=True) for n in pair][::-1]
    x = BUFFERS.copy(pad(x, around) if any(around) else x)
    steps = x.stride()[2:]
    over = [step * d for step, d in zip(steps, window.dilation, strict=True)]
    along = [step * s for step, s in zip(steps, window.stride, strict=True)]
    view = x.as_strided((*x.shape[:2], *window.kernel, *out), (*x.stride()[:2], *over, *along))
    return BUFFERS.copy(view).reshape(len(x), x.shape[1] * prod(window.kernel), prod(out))


def _gram(left: Tensor, right: Tensor) -> Tensor:
    """Inner products over the channels of [a, c, ...] and [b, c, ...]: [..., a, ..., b]."""
    one, other = (x.movedim((0, 1), (-2, -1)) for x in (left, right))  # [..., instances, c]
    c = left.shape[1]
    return (one.reshape(-1, c) @ other.reshape(-1, c).T).reshape(*one.shape[:-1], *other.shape[:-1])


def _joined(parts: Sequence[Patched], dim: int) -> Patched:
    """All of them along one axis; where the others are longer, zeros come after."""
    if len(parts) == 1:
        return parts[0]
    backs, received = (
        _even(values, dim) for values in zip(*((p.back, p.received) for p in parts), strict=True)
    )
    window = next((p.window for p in parts if p.back.numel()), parts[0].window)
    return Patched(parts[0].parameter, torch.cat(backs, dim), torch.cat(received, dim), window)


def _even(blocks: Sequence[Tensor], dim: int) -> list[Tensor]:
    """With zeros after each axis that is shorter than in the others, but for one."""
    most = [max(lengths) for lengths in zip(*(block.shape for block in blocks), strict=True)]
    return [filled(block, [*most[:dim], block.shape[dim], *most[dim + 1 :]]) for block in blocks]
