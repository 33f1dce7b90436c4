"""Pictures that are sent: as a person sees them, in every format and mode, and within bounds of memory."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
import torch
from PIL import Image

from precedents.explorer.readers import picture_case

LEVELS = np.arange(0, 256, 4, dtype=np.uint8).reshape(8, 8)


def file_of(image: Image.Image, kind: str = "PNG", **more) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **more)
    return out.getvalue()


def inked(levels) -> torch.Tensor:
    """What the model has of a picture of so light levels: ink is 1."""
    return 1 - torch.from_numpy(np.array(levels, dtype=np.float32)) / 255


def through() -> Image.Image:
    """Black, of which the picture is seen through where it is light."""
    image = Image.new("RGBA", (8, 8), "black")
    image.putalpha(Image.fromarray(255 - LEVELS))
    return image


@pytest.mark.parametrize(
    ("content", "within"),
    [
        (file_of(Image.fromarray(LEVELS)), 0),
        (file_of(Image.fromarray(LEVELS.astype(np.uint16) * 257)), 0),
        (file_of(Image.fromarray(LEVELS).convert("RGB")), 0),
        (file_of(Image.fromarray(LEVELS).convert("P")), 0),
        (file_of(Image.merge("LA", [Image.fromarray(LEVELS), Image.new("L", (8, 8), 255)])), 0),
        (file_of(through()), 1),
        (file_of(Image.fromarray(LEVELS), "JPEG", quality=100), 3),
        (file_of(Image.fromarray(LEVELS).convert("CMYK"), "JPEG", quality=100), 6),
        (file_of(Image.fromarray(LEVELS).convert("RGB"), "WEBP", lossless=True), 0),
    ],
    ids=["L", "16 bits", "RGB", "palette", "LA", "seen through", "JPEG", "CMYK", "WebP"],
)
def test_a_picture_of_any_mode_is_as_light_as_it_is(explorer, content, within) -> None:
    found = picture_case(explorer.world, content)[0]
    assert float((found - inked(LEVELS)).abs().max()) <= (within + 0.01) / 255


def test_one_bit_and_a_colour_that_is_none_are_read(explorer) -> None:
    dots = np.indices((8, 8)).sum(axis=0) % 2 == 0
    found = picture_case(explorer.world, file_of(Image.fromarray(dots)))[0]
    assert torch.equal(found, inked(255 * dots))
    grey = Image.fromarray(LEVELS)
    found = picture_case(explorer.world, file_of(grey, transparency=int(LEVELS[3, 3])))[0]
    levels = LEVELS.copy()
    levels[3, 3] = 255  # seen through
    assert torch.allclose(found, inked(levels), atol=1e-6)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_a_picture_is_upright_as_its_camera_says(explorer, orientation, kind) -> None:
    """The upper left corner is dark in the file, which is twice as wide as it is high."""
    pixels = np.full((16, 32), 255, dtype=np.uint8)
    pixels[:8, :16] = 0
    exif = Image.Exif()
    exif[0x112] = orientation
    found = picture_case(explorer.world, file_of(Image.fromarray(pixels).convert("RGB"), kind, exif=exif))[0]
    row, column = {1: (0, 0), 3: (1, 1), 6: (0, 1), 8: (1, 0)}[orientation]
    quarters = found.reshape(2, 4, 2, 4).mean(dim=(1, 3))
    wanted = torch.zeros(2, 2)
    wanted[row, column] = 1
    assert torch.allclose(quarters, wanted, atol=0.15)


def test_a_large_picture_is_what_it_is_when_made_small_by_means(explorer) -> None:
    drawn = torch.rand(8, 8, generator=torch.Generator().manual_seed(0))
    large = (255 * drawn).round().byte().numpy().repeat(40, axis=0).repeat(40, axis=1)
    whole = Image.fromarray(large).resize((8, 8), Image.Resampling.BILINEAR)
    found = picture_case(explorer.world, file_of(Image.fromarray(large)))[0]
    assert torch.allclose(found, inked(np.asarray(whole)), atol=1e-6)


@pytest.mark.parametrize(("mode", "count", "most"), [("RGB", 16, 200), ("RGBA", 3, 300)])
def test_pictures_of_twenty_megapixels_at_once_are_unpacked_one_by_one(client, mode, count, most) -> None:
    content = file_of(Image.new(mode, (4472, 4472)), compress_level=1)
    own, over = psutil.Process(), threading.Event()
    before, peak = own.memory_info().rss, [0]

    def watched() -> None:
        while not over.wait(0.005):
            peak[0] = max(peak[0], own.memory_info().rss - before)

    watcher = threading.Thread(target=watched)
    watcher.start()
    with ThreadPoolExecutor(count) as pool:
        asked = pool.map(
            lambda _: client.ask("/api/v1/try", "POST", content, Content_Type="image/png")[0], range(count)
        )
        found = list(asked)
    over.set()
    watcher.join()
    assert set(found) <= {200, 429}
    assert found.count(200) >= 1
    assert peak[0] < most * 2**20
