"""Words of messages."""


def a_type(value: object) -> str:
    """The name of a value's type with its article: "an int"."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def first_line(error: BaseException) -> str:
    """The first line of what an error says; its name, if it says nothing, or cannot say it."""
    try:
        said = str(error)
    except Exception:
        said = ""
    return (said.strip().splitlines() or [type(error).__name__])[0]


def readable(count: float) -> str:
    """A number of bytes for people: 1.2 GiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def none_there(what: str) -> str:
    """That a set has no instances; what it is called may be a plural.

    >>> none_there("training set"), none_there("new rows")
    ('The training set is empty.', 'There are no new rows.')
    """
    return f"There are no {what}." if what.endswith("s") else f"The {what} is empty."


def first_of(x: object) -> str:
    """What to type for the first of several cases: of a frame, the row with its columns."""
    return "X.iloc[[0]]" if hasattr(x, "iloc") else "x[0]"
