"""Words of messages."""


def a_type(value: object) -> str:
    """The name of a value's type with its article: "an int"."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
