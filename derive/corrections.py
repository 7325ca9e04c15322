"""Corrections: what a person may put in the place of a belief about them."""

from collections.abc import Mapping

from derive.echo import echo

TEXT_LIMIT = 300


class CorrectionError(ValueError):
    """Says which field of a correction is refused, and why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def check_correction(fact_value: Mapping[str, object]) -> None:
    """Raises CorrectionError unless the value may be a correction: a free object, but for three fields.

    `decision`, when present, is `approved` or `rejected`; `text` is one line of 1 to 300 characters.
    A `confidence` is refused: a correction is the person's word, not an estimate.
    """
    if "confidence" in fact_value:
        raise CorrectionError("confidence", "confidence cannot be set: a correction has none")
    if "decision" in fact_value and fact_value["decision"] not in ("approved", "rejected"):
        shown = echo(fact_value["decision"])
        raise CorrectionError("decision", f"decision {shown} is neither `approved` nor `rejected`")
    if "text" in fact_value:
        _check_text(fact_value["text"])


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise CorrectionError("text", f"text {echo(text)} is not a string")
    if not text.strip():
        raise CorrectionError("text", f"text {echo(text)} is empty")
    if len(text) > TEXT_LIMIT:
        raise CorrectionError("text", f"text {echo(text)} is longer than {TEXT_LIMIT} characters")
    if text.splitlines() != [text]:
        raise CorrectionError("text", f"text {echo(text)} is more than one line")
