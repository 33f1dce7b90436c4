"""Words of messages."""


def a_type(value: object) -> str:
    """The name of a value's type with its article: "an int"."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def first_line(error: Exception) -> str:
    """The first line of what an error says; its name, if it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]
