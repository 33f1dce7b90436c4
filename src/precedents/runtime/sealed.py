"""JSON with a checksum as its last entry, so that a flipped byte is named and never read as something else.

The checksum is a CRC-32 of all that stands before it, which no flipped bit leaves as it was.
"""

import re
from zlib import crc32

SEAL = re.compile(rb'(.*), ?"checksum": ?"[0-9a-f]{8}"\}', re.DOTALL)


def sealed(text: str, comma: str = ", ", colon: str = ": ") -> str:
    """The text of a JSON object with the checksum in it; what stands between entries is as in the rest.

    >>> sealed('{"k": 3}')
    '{"k": 3, "checksum": "de16fb89"}'
    """
    body = text.rstrip()[:-1].rstrip()
    return f'{body}{comma}"checksum"{colon}"{crc32(encoded(body)):08x}"}}'


def encoded(text: str) -> bytes:
    """The bytes of a text of JSON; half of a pair of surrogates, which has none, as JSON escapes it."""
    return text.encode(errors="backslashreplace")


def unsealed(content: bytes) -> bytes | None:
    """The JSON object without its checksum; None if there is none, a ValueError if it is not of this text.

    >>> unsealed(b'{"k": 3, "checksum": "de16fb89"}'), unsealed(b'{"k": 3}')
    (b'{"k": 3}', None)
    """
    found = SEAL.fullmatch(content.rstrip())
    if found is None:
        return None
    if not content.rstrip().endswith(f'"{crc32(found[1]):08x}"}}'.encode()):
        raise ValueError("its checksum differs")
    return found[1] + b"}"


def is_sealed(content: bytes) -> bool:
    """Whether there is a checksum, and it is of this text."""
    try:
        return unsealed(content) is not None
    except ValueError:
        return False
