"""One spelling an address."""

from __future__ import annotations

import pytest

from gateway.authn.emails import normal_email


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        (" Owner@Sample.Example ", "owner@sample.example"),
        ("a.b+c@localhost", "a.b+c@localhost"),
        ("cafe\u0301@sample.example", "caf\u00e9@sample.example"),
        ("\u0430nna@sample.example", "\u0430nna@sample.example"),
        ("no-at.example", None),
        ("two@at@sample.example", None),
        ("@sample.example", None),
        ("a@", None),
        ("a@.example", None),
        ("a@sample..example", None),
        ("a b@sample.example", None),
        ("a\x00@sample.example", None),
        ("a\u202e@sample.example", None),
        ("a" * 250 + "@b.cd", None),
        ("", None),
    ],
)
def test_an_address_has_one_spelling_or_none(given: str, normal: str | None) -> None:
    assert normal_email(given) == normal
    assert normal is None or normal_email(normal) == normal
