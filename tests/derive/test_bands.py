"""Bands are half-open, and 50 is an edge."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.amounts import Amount
from derive.bands import BANDS, BANDS_VERSION, band_of, bands_within, is_band


def test_the_table_is_the_one_of_its_version() -> None:
    ranges = ("0-10", "10-50", "50-100", "100-500", "500-1000", "1000-5000", "5000-10000", "10000+")
    assert (BANDS_VERSION, BANDS) == (1, (*ranges, "none", "unknown"))


@pytest.mark.parametrize(
    ("amount", "band"),
    [
        ("0", "0-10"),
        ("9.9999", "0-10"),
        ("10", "10-50"),
        ("49.9999", "10-50"),
        ("50", "50-100"),
        ("99.9999", "50-100"),
        ("100", "100-500"),
        ("499.9999", "100-500"),
        ("500", "500-1000"),
        ("999.9999", "500-1000"),
        ("1000", "1000-5000"),
        ("4999.9999", "1000-5000"),
        ("5000", "5000-10000"),
        ("9999.9999", "5000-10000"),
        ("10000", "10000+"),
        ("922337203685477.5807", "10000+"),
    ],
)
def test_an_edge_belongs_to_the_band_above_it(amount: str, band: str) -> None:
    assert band_of(Amount("known", Decimal(amount))) == band


def test_an_amount_that_is_not_given_is_not_one_that_is_not_understood() -> None:
    assert band_of(Amount("absent", None)) == "none"
    assert band_of(Amount("unknown", None)) == "unknown"


@given(st.decimals(min_value=0, max_value=9999, places=4))
def test_every_amount_lies_within_its_band(amount: Decimal) -> None:
    low, high = map(Decimal, band_of(Amount("known", amount)).split("-"))
    assert low <= amount < high


@pytest.mark.parametrize("band", [*BANDS, "0-25", "25-1000", "25+"])
def test_a_band_of_any_table_is_one(band: str) -> None:
    assert is_band(band)


@pytest.mark.parametrize(
    "text", ["", "10", "-", "10-", "-10", "010-20", "0-10 ", "1.5-2", "+", "none+", "a-b", "10-50-100", "\u0661-2"]
)
def test_nothing_else_is_a_band(text: str) -> None:
    assert not is_band(text)


@pytest.mark.parametrize(
    ("band", "within"),
    [
        ("10-50", ("10-50",)),
        ("none", ("none",)),
        ("unknown", ("unknown",)),
        ("0-5", ("0-10",)),
        ("0-25", ("0-10", "10-50")),
        ("20000+", ("10000+",)),
        ("5000+", ("5000-10000", "10000+")),
        ("10000-20000", ("10000+",)),
    ],
)
def test_a_band_of_an_earlier_table_lies_within_bands_of_this_one(band: str, within: tuple[str, ...]) -> None:
    assert bands_within(band) == within
