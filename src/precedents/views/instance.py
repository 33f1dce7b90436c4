"""The view of one instance: what a person sees of it is a picture, a text, or the named values of a table row.

Print, figures, notebooks and pages all show an instance by what `shown` gives; with a title it is a `Cell`.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from io import BytesIO
from math import floor, isfinite, log10
from struct import pack
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard, Union, get_args
from zlib import compress, crc32

import numpy as np

from precedents.errors import InputError
from precedents.runtime.users_code import users
from precedents.views.marks import WordShares

if TYPE_CHECKING:
    from torch import Tensor

    from precedents.data.inputs import Inputs

Shown: TypeAlias = Union["np.ndarray[Any, Any]", str, Mapping[str, Any]]
Render: TypeAlias = Callable[[Any], Any]
Channels = Literal["first", "last"]
CHANNELS: tuple[str, ...] = get_args(Channels)
READ = 1e10  # up to which a number is read digit by digit
START, DAY = datetime(1970, 1, 1), timedelta(days=1)


@dataclass(frozen=True)
class Cell:
    """One instance among others, with what is written above it."""

    title: str
    shown: Shown
    agrees: bool | None = None  # whether its class is the predicted one; None for a case
    words: WordShares | None = None  # of a text, with their shares of the score, if these are known
    columns: Mapping[str, float] = field(default_factory=dict)  # of a table row, by their shares of the score


def is_picture(shown: Shown) -> "TypeGuard[np.ndarray[Any, Any]]":
    """Whether a person sees a picture."""
    return not isinstance(shown, (str, Mapping))


def shown(instance: "Inputs", render: Render | None = None) -> Shown:
    """An instance as a picture [h, w] or [h, w, 3] within 0..1, a text, or a mapping of named values.

    `render` decides when given. Otherwise the shape does: two or three axes are a picture, whole
    numbers in a row are tokens, other numbers in a row are a table row.
    """
    import torch

    from precedents.data.inputs import leaves, plain_array

    value: Any = _rendered(instance, render) if render is not None else leaves(instance)[0]
    if isinstance(value, (str, Mapping)):
        return value
    try:
        array = torch.as_tensor(plain_array(value)).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"render returned a {type(value).__name__}. Return an image array, a text or a mapping of values."
        ) from None
    if array.ndim >= 2:
        return _picture(array)
    if array.is_floating_point():
        return {f"x{i}": float(v) for i, v in enumerate(array.reshape(-1))}
    return " ".join(str(int(v)) for v in array.reshape(-1))


def _rendered(instance: Any, render: Render) -> Any:
    with users("the function render", "It is called with one instance"):
        return render(instance)


def scores(values: Sequence[float]) -> list[str]:
    """Relevances that stand together, all with the same digits: as many as the largest needs to be read."""
    largest = max((abs(value) for value in values if isfinite(value)), default=0) or 1
    power = floor(log10(largest))
    digits = "+.2e" if abs(power) > 3 else f"+.{(3 if power >= 0 else 2) - power}f"
    return [f"{value:{digits}}" for value in values]


def _picture(array: "Tensor") -> "np.ndarray[Any, Any]":
    image = unit(channels_last(array))
    return (image if image.shape[-1] == 3 else image.mean(dim=-1)).numpy()


def channels_last(array: "Tensor", channels: Channels | None = None) -> "Tensor":
    """An image as [h, w, c]; without a word on them, the channels are the axis that has 1 or 3 entries."""
    while array.ndim > 3:
        array = array[0]
    if array.ndim < 3:
        return array[..., None]
    sizes = array.shape
    if channels is None:
        last = sizes[-1] in (1, 3) or (sizes[0] not in (1, 3) and sizes[-1] in (2, 4))
        channels = "last" if last else "first"
    return array if channels == "last" else array.permute(1, 2, 0)


def unit(image: "Tensor") -> "Tensor":
    """Numbers within 0..1: bytes by 255; others as they are, or from the smallest to the largest."""
    values = image.double().nan_to_num()
    low, high = float(values.min()), float(values.max())
    if not image.is_floating_point():
        low, high = 0.0, 255.0 if high > 1 else 1.0
    elif low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    return ((values - low) / max(high - low, 1e-12)).clamp(0, 1)


def as_png(picture: "np.ndarray[Any, Any]") -> str:
    """The picture as a data address for an HTML page."""
    return "data:image/png;base64," + b64encode(png(picture)).decode()


def png(picture: "np.ndarray[Any, Any]") -> bytes:
    """The picture as a file; what is neither grey nor of three colours within 0 and 1 is matplotlib's work."""
    if picture.dtype.kind == "f" and picture.min(initial=0) >= 0 and picture.max(initial=1) <= 1:
        if picture.ndim == 2:
            return encoded(255 - (256 * picture).clip(max=255).astype(np.uint8))
        if picture.ndim == 3 and picture.shape[2] == 3:
            return encoded((255 * picture).astype(np.uint8))
    from matplotlib.image import imsave

    file = BytesIO()
    imsave(file, picture, cmap="gray_r", vmin=0, vmax=1, format="png")
    return file.getvalue()


def encoded(pixels: "np.ndarray[Any, Any]") -> bytes:
    """Bytes of grey [h, w] or of three colours [h, w, 3] as PNG."""
    height, width = pixels.shape[:2]
    rows = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0))).tobytes()  # none is filtered
    head = pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", compress(rows)), (b"IEND", b"")
    chunks = (pack(">I", len(own)) + name + own + pack(">I", crc32(name + own)) for name, own in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def shrunk(picture: "np.ndarray[Any, Any]", most: int) -> "np.ndarray[Any, Any]":
    """The picture with at most `most` pixels a side, each the mean of a block."""
    step = -(-max(picture.shape[:2]) // most)
    if step <= 1:
        return picture
    height, width = (-(-side // step) for side in picture.shape[:2])
    missing = [(0, height * step - picture.shape[0]), (0, width * step - picture.shape[1])]
    whole = np.pad(picture, missing + [(0, 0)] * (picture.ndim - 2), mode="edge")
    blocks = whole.reshape(height, step, width, step, *picture.shape[2:])
    mean: np.ndarray[Any, Any] = blocks.mean(axis=(1, 3))
    return mean


def written(value: Any, digits: str = ".3g") -> str:
    """A value of a table row as a text; a date without a time that says nothing.

    >>> written(19270.24), written(0.123456), written(1.5e12), written(-31.25)
    ('19270', '0.123', '1.5e+12', '-31.2')
    >>> written(datetime(2024, 1, 4)), written(np.datetime64("2024-01-04T09:30"))
    ('2024-01-04', '2024-01-04 09:30:00')
    """
    if isinstance(value, float):
        whole = not isfinite(value) or 1 <= abs(value) < READ
        return f"{value:.0f}" if whole and "e" in f"{value:{digits}}" else f"{value:{digits}}"
    moment = _moment(value)
    if isinstance(moment, datetime) and not hasattr(value, "start_time"):
        return str(moment).removesuffix(" 00:00:00")
    return str(moment) if isinstance(value, np.generic) and moment is not None else str(value)


def is_date(value: Any) -> bool:
    """Whether it is a day or a moment, and no span of time."""
    return isinstance(_moment(value), date)


def on_day(count: float) -> str:
    """The date that is so many days after 1970 began.

    >>> on_day(19723.6)
    '2024-01-01'
    """
    return str((START + count * DAY).date())


def days(value: Any) -> float | None:
    """The days of a date since 1970, or of a span of time; none of anything else."""
    moment = _moment(value)
    if isinstance(moment, timedelta):
        return moment / DAY
    if isinstance(moment, datetime):
        return (moment.replace(tzinfo=None) - (moment.utcoffset() or 0 * DAY) - START) / DAY
    return None if moment is None else float((moment - START.date()).days)


def _moment(value: Any) -> date | timedelta | None:
    """A date, a date with a time, or a span of time, from what numpy and pandas have; none of all else."""
    value = getattr(value, "start_time", value)  # of a Period
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, np.timedelta64):
        value = value.astype("timedelta64[us]").item()
    known = isinstance(value, (date, timedelta)) and value == value
    return value if known else None


def lines(values: Mapping[str, Any], most: int = 12) -> list[str]:
    """A table row as lines `name value`; a long one ends with how many more there are."""
    kept = list(values.items())[:most]
    width = max((len(str(name)) for name, _ in kept), default=0)
    text = [f"{name!s:<{width}} {written(value)}" for name, value in kept]
    return text if len(values) <= most else [*text, f"... {len(values) - most} more"]
