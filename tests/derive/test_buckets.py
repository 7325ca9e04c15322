"""A fact key is a bucket, and a bucket is a fact key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.amounts import AmountError
from derive.bands import BANDS
from derive.buckets import Bucket, RecipientKind, bucket_of, bucket_of_key, fact_key, is_action_type

KEY = "approval_tendency:refund.create|0-10|known|a@b.co"
RECIPIENTS = st.one_of(
    st.text(min_size=1),
    st.text("%|7C25cnoe", min_size=1),
    st.sampled_from(["none", "我喜欢健身", "我喜欢普洱茶", "👩\u200d👧", "e\u0301", "\u00e9", "%7C", "%257C", "|||"]),
)
KINDS = st.sampled_from(("new", "known"))
BUCKETS = st.one_of(
    st.builds(Bucket, st.just("refund.create"), st.sampled_from(BANDS), KINDS, RECIPIENTS),
    st.builds(Bucket, st.just("a.b.c"), st.sampled_from(BANDS), st.just("none"), st.just("none")),
)


def test_a_bucket_is_the_action_the_band_and_the_recipient() -> None:
    payload = {"amount_usd": "5", "recipient": "A@b.co"}
    bucket = Bucket("refund.create", "0-10", "known", "a@b.co")
    assert bucket_of("refund.create", payload, known_recipient=True) == bucket
    assert fact_key(bucket) == KEY


def test_a_recipient_that_history_does_not_know_is_new() -> None:
    bucket = bucket_of("refund.create", {"to": "b"}, known_recipient=False)
    assert bucket == Bucket("refund.create", "none", "new", "b")


@pytest.mark.parametrize("known", [True, False])
def test_nobody_is_neither_new_nor_known(known: bool) -> None:
    bucket = bucket_of("ticket.close", {}, known_recipient=known)
    assert bucket == Bucket("ticket.close", "none", "none", "none")


def test_a_recipient_called_none_is_not_nobody() -> None:
    nobody = bucket_of("ticket.close", {}, known_recipient=False)
    somebody = bucket_of("ticket.close", {"to": "none"}, known_recipient=False)
    assert fact_key(nobody) == "approval_tendency:ticket.close|none|none|none"
    assert fact_key(somebody) == "approval_tendency:ticket.close|none|new|none"


def test_percent_and_pipe_are_escaped_in_the_key() -> None:
    bucket = bucket_of("refund.create", {"to": "50%|x"}, known_recipient=False)
    assert fact_key(bucket) == "approval_tendency:refund.create|none|new|50%25%7Cx"


def test_two_spellings_of_one_recipient_have_one_key() -> None:
    first = bucket_of("refund.create", {"to": "Cafe\u0301"}, known_recipient=False)
    second = bucket_of("refund.create", {"to": "caf\u00e9 "}, known_recipient=False)
    assert fact_key(first) == fact_key(second)


@given(BUCKETS)
def test_a_key_gives_back_its_bucket(bucket: Bucket) -> None:
    assert bucket_of_key(fact_key(bucket)) == bucket


@given(BUCKETS, BUCKETS)
def test_different_buckets_have_different_keys(first: Bucket, second: Bucket) -> None:
    assert (fact_key(first) == fact_key(second)) == (first == second)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "approval_tendency:",
        KEY.removeprefix("approval_tendency:"),
        f"approval_tendency:{KEY}",
        f" {KEY}",
        f"{KEY}|x",
        f"{KEY}%",
        f"{KEY}%41",
        f"{KEY}%7c",
        KEY.replace("refund.create", "refund"),
        KEY.replace("refund.create", "Refund.create"),
        KEY.replace("refund.create", "refund.*"),
        KEY.replace("0-10", "0-1x"),
        KEY.replace("known", "none"),
        KEY.replace("known", "other"),
        KEY.replace("a@b.co", ""),
        "approval_tendency:refund.create|0-10|none|",
    ],
)
def test_a_key_in_any_other_form_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="`"):
        bucket_of_key(key)


@given(st.text("approval_tendency:refund.create|0-10|known|%257Cc"))
def test_what_is_read_as_a_key_is_written_as_the_same_key(text: str) -> None:
    try:
        bucket = bucket_of_key(text)
    except ValueError:
        return
    assert fact_key(bucket) == text


@given(st.sampled_from(("new", "known")), RECIPIENTS)
def test_a_key_read_at_random_is_refused_or_exact(kind: RecipientKind, tail: str) -> None:
    key = f"approval_tendency:refund.create|0-10|{kind}|{tail}"
    try:
        bucket = bucket_of_key(key)
    except ValueError:
        assert "|" in tail or "%" in tail
    else:
        assert fact_key(bucket) == key


@pytest.mark.parametrize("action", ["refund.create", "a.b.c", "a_1.2", "_._", "a." + "b" * 62])
def test_an_action_is_a_namespace_and_a_verb(action: str) -> None:
    assert is_action_type(action)


@pytest.mark.parametrize(
    "action",
    [
        *("", "refund", "refund.", ".create", "a..b", "Refund.create", "refund.*", "*", "a.b\n", "a b.c"),
        *("é.b", "a|b.c", "a-b.c", "a." + "b" * 63),
    ],
)
def test_anything_else_is_no_action(action: str) -> None:
    assert not is_action_type(action)


def test_a_bucket_of_a_malformed_action_or_amount_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^action_type `refund` is not"):
        bucket_of("refund", {}, known_recipient=False)
    with pytest.raises(AmountError, match=r"^amount_usd `-5` is not"):
        bucket_of("refund.create", {"amount_usd": "-5"}, known_recipient=False)
