"""Query: what an address asks for; whole numbers in range, names from closed sets, and nothing else."""

from collections.abc import Iterable, Mapping

from precedents.explorer.safety import Refusal
from precedents.seen import clipped

WORDS = 100  # letters of what is searched


class Query:
    """The parameters of a request, each read once; what was not read is refused by `over`."""

    def __init__(self, given: Iterable[tuple[str, str]], path: Mapping[str, str] | None = None) -> None:
        self._given: dict[str, str] = {}
        for name, value in given:
            if name in self._given:
                raise Refusal(400, f"There are several values for {clipped(name)}.")
            self._given[name] = value
        self.path = dict(path or {})
        self.read: dict[str, str] = {}  # what was given, to be written into links

    def whole(self, name: str, low: int, high: int, default: int) -> int:
        """A whole number within low..high."""
        text = self._taken(name)
        return default if text is None else whole(text, name, low, high)

    def maybe(self, name: str, low: int, high: int) -> int | None:
        """The same, or nothing."""
        text = self._taken(name)
        return None if text is None else whole(text, name, low, high)

    def choice(self, name: str, known: Iterable[str], default: str) -> str:
        """One of the known names."""
        text, names = self._taken(name), list(known)
        if text is not None and text not in names:
            raise Refusal(400, f"{name} is {clipped(text)!r}. Known: {', '.join(map(clipped, names))}.")
        return default if text is None else text

    def text(self, name: str) -> str:
        """A short text."""
        text = self._taken(name) or ""
        if len(text) > WORDS:
            raise Refusal(400, f"{name} has {len(text)} letters. Use at most {WORDS}.")
        return text

    def place(self, name: str, count: int, what: str) -> int:
        """The place of an instance among so many, from the path."""
        text = self.path[name]
        if not (text.isascii() and text.isdecimal()) or len(text) > 12 or int(text) >= count:
            raise Refusal(404, f"There is no {what} {clipped(text)}: they run from 0 to {count - 1}.")
        return int(text)

    def over(self) -> None:
        """Refuses what nobody asked for."""
        if self._given:
            raise Refusal(400, f"There is no parameter {clipped(next(iter(self._given)))} here.")

    def _taken(self, name: str) -> str | None:
        value = self._given.pop(name, None)
        if value is not None and value != "":
            self.read[name] = value
            return value
        return None


def whole(text: str, name: str, low: int, high: int) -> int:
    """A text of digits as a number within low..high."""
    digits = text.isascii() and text.isdecimal() and len(text) <= 12
    if not digits or not low <= int(text) <= high:
        raise Refusal(400, f"{name} is {clipped(text)!r}. Use a whole number from {low} to {high}.")
    return int(text)
