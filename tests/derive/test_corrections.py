"""A correction is the person's own object, within three rules."""

from collections.abc import Mapping

import pytest

from derive.corrections import CorrectionError, check_correction


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"anything": {"at": ["all", None]}},
        {"decision": "approved"},
        {"decision": "rejected", "text": "Never without asking me."},
        {"text": "x" * 300},
        {"text": "健身 👍"},
    ],
)
def test_a_free_object_is_a_correction(value: Mapping[str, object]) -> None:
    check_correction(value)


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        ({"confidence": "0.99"}, "confidence", "confidence cannot be set: a correction has none"),
        ({"confidence": None}, "confidence", "confidence cannot be set: a correction has none"),
        ({"decision": "denied"}, "decision", "decision `denied` is neither `approved` nor `rejected`"),
        ({"decision": None}, "decision", "decision `None` is neither `approved` nor `rejected`"),
        (
            {"decision": ["approved"]},
            "decision",
            "decision `['approved']` is neither `approved` nor `rejected`",
        ),
        ({"text": 5}, "text", "text `5` is not a string"),
        ({"text": None}, "text", "text `None` is not a string"),
        ({"text": ""}, "text", "text `` is empty"),
        ({"text": " \n"}, "text", r"text ` \n` is empty"),
        ({"text": "x" * 301}, "text", f"text `{'x' * 40}` is longer than 300 characters"),
        ({"text": "a\nb"}, "text", r"text `a\nb` is more than one line"),
        ({"text": "a\u2028b"}, "text", r"text `a\u2028b` is more than one line"),
        ({"text": "a\r"}, "text", r"text `a\r` is more than one line"),
    ],
)
def test_a_refusal_names_the_field(value: Mapping[str, object], field: str, message: str) -> None:
    with pytest.raises(CorrectionError) as refusal:
        check_correction(value)
    assert (refusal.value.field, str(refusal.value)) == (field, message)
