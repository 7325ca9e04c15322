"""An echo: a refused value as an error message shows it."""

import reprlib

LENGTH = 40


def echo(value: object) -> str:
    """Gives the value in backticks, cut to 40 characters, with what cannot be printed escaped."""
    text = value if isinstance(value, str) else reprlib.repr(value)
    # repr leaves what a reader can see and escapes the rest, lone surrogates included.
    shown = repr(text[:LENGTH])[1:-1].replace("`", "'")
    return f"`{shown[:LENGTH]}`"
