"""A value of an argument, for a sentence that ends in "not …"."""

from __future__ import annotations

_LONGEST = 60
_DIGITS = 10**20


def shown(value: object) -> str:
    """A value as it was written where that is short, else what it is."""
    text = _as_text(value)
    return text if text is not None and len(text) <= _LONGEST else kind_of(value)


def kind_of(value: object) -> str:
    """What an argument is."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else type(value).__name__


def _as_text(value: object) -> str | None:
    """None for what is better not written out, such as an array."""
    if isinstance(value, tuple | list) and len(value) <= _LONGEST:
        parts = [shown(each) for each in value]
        inside = ", ".join(parts)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside}{',' * (len(parts) == 1)})"
    if isinstance(value, int) and not -_DIGITS < value < _DIGITS:
        return "a number of many digits"
    return repr(value) if isinstance(value, str | bytes | int | float | complex | None) else None
