"""Recipients are trimmed, composed and lower-cased, and nothing more."""

from collections.abc import Mapping
from unicodedata import is_normalized

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.recipients import RECIPIENT_FIELDS, read_recipient


def test_the_fields_are_read_in_their_order() -> None:
    payload: dict[str, object] = {field: field.upper() for field in RECIPIENT_FIELDS}
    for field in RECIPIENT_FIELDS:
        assert read_recipient(payload) == field
        del payload[field]
    assert read_recipient(payload) is None


@pytest.mark.parametrize(
    ("payload", "recipient"),
    [
        ({"to": "  A@B.co\n"}, "a@b.co"),
        ({"recipient": "", "to": "b"}, "b"),
        ({"recipient": " \t", "to": "b"}, "b"),
        ({"recipient": 7, "to": None, "payee": ["x"], "email": "b"}, "b"),
        ({"recipient": {"email": "x"}}, None),
        ({"recipient": ""}, None),
        ({"name": "b"}, None),
    ],
)
def test_a_field_that_is_blank_or_no_string_is_absent(payload: Mapping[str, object], recipient: str) -> None:
    assert read_recipient(payload) == recipient


def test_composed_and_decomposed_spellings_are_one_recipient() -> None:
    assert read_recipient({"to": "Cafe\u0301"}) == read_recipient({"to": "CAF\u00c9"}) == "caf\u00e9"


@pytest.mark.parametrize(
    "other",
    ["p\u0430ypal", "paypa1", "pay\u200bpal", "\uff50aypal", "pa\u0443pal", "paypal.", "paypal\ufe0f"],
)
def test_look_alikes_stay_different(other: str) -> None:
    assert read_recipient({"to": other}) != read_recipient({"to": "paypal"})


@given(st.text())
def test_reading_a_recipient_again_changes_nothing(text: str) -> None:
    recipient = read_recipient({"to": text})
    if recipient is None:
        assert not text.strip()
    else:
        assert read_recipient({"to": recipient}) == recipient
        assert is_normalized("NFC", recipient)
