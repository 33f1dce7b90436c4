"""Readers: what a person types or draws becomes a case as the model takes it; what cannot is refused."""

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from precedents.data.inputs import leaves
from precedents.errors import InputError
from precedents.explorer.limits import PIXELS
from precedents.explorer.world import World
from precedents.views.instance import channels_last
from precedents.views.render import Images, Tables, Texts
from precedents.zoo.text import encoded

LARGEST = 2**63  # of whole numbers in columns, the first that is too large
FORMATS = ("PNG", "JPEG", "WEBP")
ORIENTATION, SIDEWAYS = 0x112, 5  # of Exif, and from where on width and height change places


def text_case(world: World, text: str) -> Any:
    """A text as the model takes it: itself, or the numbers of its words."""
    if world.kind != "texts":
        raise InputError(f"This model explains {world.kind}, not texts.")
    if not text.strip():
        raise InputError("There is no word in the text. Type some.")
    if isinstance(world.subject.train.seen([0])[0], str):
        return [text]
    return _tokens(world, text.casefold().split())


def _tokens(world: World, words: Sequence[str]) -> Tensor:
    """By the vocabulary that texts are shown by."""
    render: Any = world.subject.render
    dataset = getattr(render, "__self__", None)
    example = leaves(world.subject.train.first)[0]
    if getattr(dataset, "words", None) and getattr(dataset, "kind", "") == "text":
        row = encoded([words], dataset.words)[0]  # type: ignore[union-attr]
    elif isinstance(render, Texts) and isinstance(render.words, (Sequence, Mapping)):
        row = torch.tensor([_number(word, render.words) for word in words])
    else:
        raise InputError("This model takes numbers of words, and how words become numbers is not known here.")
    if len(row) > len(example):
        raise InputError(f"The text has {len(row)} tokens, but this model reads {len(example)} at most.")
    padded = torch.zeros_like(example)
    padded[: len(row)] = row.to(example)
    return padded


def _number(word: str, words: Any) -> int:
    pairs = words.items() if isinstance(words, Mapping) else enumerate(words)
    for number, own in pairs:
        if str(own).casefold() == word:
            return int(number)
    raise InputError(f"The model does not know the word {word!r}.")


def row_case(world: World, row: Mapping[str, Any]) -> Any:
    """The values of a table row as the model takes them."""
    if world.kind != "rows":
        raise InputError(f"This model explains {world.kind}, not table rows.")
    example = world.shown("train", 0)
    assert isinstance(example, Mapping)
    missing = [str(name) for name in example if str(name) not in row]
    if missing or len(row) != len(example):
        raise InputError(f"Give a value for each column: {', '.join(map(str, example))}.")
    values = row_values(example, row)
    if world.subject.train.originals is not None:
        import pandas as pd

        return pd.DataFrame([values])
    return _scaled(world, values)


def row_values(example: Mapping[Any, Any], row: Mapping[str, Any]) -> dict[Any, Any]:
    """The typed values of a row, each as that of the same column of an example is."""
    return {name: _like(row[str(name)], own, str(name)) for name, own in example.items()}


def as_python(world: World, given: Any) -> str:
    """Python that is the case which was typed; empty where a line does not say it."""
    train = world.subject.train
    if isinstance(given, str) and isinstance(train.seen([0])[0], str):
        return f"print(explainer.explain([{given!r}], k=8))"
    example = world.shown("train", 0) if isinstance(given, Mapping) and train.originals is not None else None
    if not isinstance(example, Mapping):
        return ""
    row = f"row = pd.DataFrame([{row_values(example, given)!r}])"
    return f"import pandas as pd\n\n{row}\nprint(explainer.explain(row, k=8))"


def _scaled(world: World, values: Mapping[Any, Any]) -> Tensor:
    """As before it was shown: less the mean, over the deviation; what the model cannot hold is refused."""
    row = torch.tensor([float(value) for value in values.values()], dtype=torch.double)
    render: Any = world.subject.render
    if isinstance(render, Tables):
        row = row if render.mean is None else row - render.mean
        row = row if render.std is None else row / render.std
    example = leaves(world.subject.train.first)[0]
    if row.numel() != example.numel():
        raise InputError("What is shown of a row is not what the model takes: rows cannot be typed here.")
    found = row.reshape(example.shape).to(example)
    held = found.double().flatten()
    lost = ~held.isfinite() if found.is_floating_point() else held != row.flatten()
    if bool(lost.any()):
        name = list(values)[int(lost.nonzero()[0])]
        kind = str(example.dtype).removeprefix("torch.")
        raise InputError(
            f"{name} is {values[name]}, which no {kind} holds: the model takes these. Give another number."
        )
    return found


def _like(text: Any, own: Any, name: str) -> Any:
    """A value as that of the same column is: a number, or a text."""
    if isinstance(own, bool) or not isinstance(own, (int, float)):
        return str(text)
    try:
        number = float(text)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {str(text)[:40]!r}, but the column holds numbers.") from None
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not math.isfinite(number) or (isinstance(own, int) and abs(number) >= LARGEST):
        raise InputError(
            f"{name} is {str(text)[:40] if isinstance(text, str) else number}. Give a finite, smaller number."
        )
    return int(number) if isinstance(own, int) and number.is_integer() else number


def picture_case(world: World, content: bytes) -> Tensor:
    """A picture as the model takes it: of its size and channels, dark where pages show dark."""
    if world.kind != "pictures":
        raise InputError(f"This model explains {world.kind}, not pictures.")
    example = leaves(world.subject.train.first)[0]
    last = channels_last(example)
    height, width, channels = last.shape
    pixels = _decoded(content, (width, height), "RGB" if channels == 3 else "L").double() / 255
    if channels != 3:
        pixels = 1 - pixels  # ink is 1, as grey pictures are shown
    pixels = pixels.expand(height, width, channels)
    render: Any = world.subject.render
    if isinstance(render, Images) and (render.mean is not None or render.std is not None):
        pixels = pixels if render.mean is None else pixels - render.mean
        pixels = pixels if render.std is None else pixels / render.std
    else:
        pixels = pixels * _largest(world)
    if example.ndim == 3 and tuple(last.shape) != tuple(example.shape):
        pixels = pixels.permute(2, 0, 1)
    return pixels.reshape(example.shape).to(example)


def _largest(world: World) -> float:
    """The largest number of some training pictures: what white or ink is there."""
    some = world.subject.train.take(range(min(64, len(world.subject.train)))).inputs
    high = max(float(leaf.max()) for leaf in leaves(some))
    return high if high > 1 else 1.0


def _decoded(content: bytes, size: tuple[int, int], mode: str) -> Tensor:
    """The pixels of a file [h, w, c]; what is none, or too large, is refused before it is unpacked."""
    import numpy as np
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with Image.open(io.BytesIO(content), formats=FORMATS) as image:
                if image.width * image.height > PIXELS:
                    raise InputError(
                        f"The picture has {image.width} x {image.height} pixels; 20 megapixels are the most."
                    )
                array = np.array(_small(image, size).convert(mode))
    except InputError:
        raise
    except Exception as error:
        raise InputError("This is no picture that can be read. Send a PNG, JPEG or WebP file.") from error
    pixels = torch.from_numpy(array)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _small(image: Any, size: tuple[int, int]) -> Any:
    """A picture of this size, upright, on white; made small first, so that little is as large as the file."""
    import numpy as np
    from PIL import Image, ImageOps

    turned = image.getexif().get(ORIENTATION, 1) >= SIDEWAYS
    size = (size[1], size[0]) if turned else size
    image.draft(image.mode, tuple(4 * side for side in size))  # a JPEG can be unpacked smaller than it is
    exif = image.info.get("exif")
    if image.mode.startswith("I"):  # 16 bits
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    seen_through = image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info
    if seen_through or image.mode not in ("L", "RGB"):
        image = image.convert("RGBA" if seen_through else "RGB")
    small = image.resize(size, Image.Resampling.BILINEAR)
    if seen_through:
        white = Image.new("RGB", size, "white")
        white.paste(small, mask=small.getchannel("A"))
        small = white
    if exif is not None:
        small.info["exif"] = exif
    return ImageOps.exif_transpose(small)
