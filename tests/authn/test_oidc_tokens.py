"""Access tokens of an issuer: what is taken, and every way in which one is not."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from joserfc import jwe, jws
from joserfc.jwk import ECKey

from gateway.authn.access_token import LONGEST, Terms
from gateway.authn.authenticator import Authenticator
from gateway.authn.compact import TOKEN_CHARACTERS
from gateway.authn.issuer import Issuer, Names
from gateway.authn.issuer_keys import IssuerKeys
from gateway.authn.jwks import FITS
from gateway.authn.signer import Signer
from gateway.config import OIDC_ALGORITHMS
from gateway.errors import InvalidToken, Unauthenticated
from gateway.model.caller import Caller
from tests.authn.builders import NOW, ORG, People, a_human
from tests.authn.issuing import AUDIENCE, ISSUER, claims, key, key_set, published, signed

SENTENCE = "the credential is missing, unknown, expired or revoked"
SKEW = timedelta(seconds=30)
AT = int(NOW.timestamp())
TERMS = Terms(ISSUER, frozenset({AUDIENCE, "second"}), frozenset({"RS256", "PS256", "ES256", "EdDSA"}), SKEW)
KEYS = key_set(
    published("one"),
    published("rsa", key("2048")),
    published("rs", key("2048"), alg="RS256"),
    published("ed", key("Ed25519")),
    published("384", key("P-384")),
)


@pytest.fixture
def people() -> People:
    made = People()
    made.humans[a_human().id] = a_human()
    return made


@pytest.fixture
def authenticator(tmp_path: Path, people: People) -> Authenticator:
    keys = IssuerKeys(lambda: KEYS)
    keys.load(NOW)
    issuer = Issuer(TERMS, Names("email", None, None, None), keys)
    return Authenticator(Signer.create(tmp_path), people, rate_limit=0, issuer=issuer)


def why(authenticator: Authenticator, token: str, *, seconds: float = 0) -> str:
    """The reason of a refusal, whose sentence is always the same."""
    with pytest.raises(InvalidToken) as error:
        authenticator.authenticate(token, NOW + timedelta(seconds=seconds))
    assert (error.value.status, error.value.detail) == (401, SENTENCE)
    return error.value.reason


# -- what is taken


@pytest.mark.parametrize(
    ("alg", "kid", "kind"),
    [
        ("ES256", "one", "P-256"),
        ("RS256", "rsa", "2048"),
        ("PS256", "rsa", "2048"),
        ("RS256", "rs", "2048"),
        ("EdDSA", "ed", "Ed25519"),
    ],
)
def test_a_token_of_each_algorithm_stands_for_its_member(authenticator: Authenticator, alg: str, kid: str, kind: str) -> None:
    caller = authenticator.authenticate(signed(alg=alg, kid=kid, by=key(kind)), NOW)
    digest = caller.token_id
    assert digest is not None
    ends_at = NOW + timedelta(seconds=600) + SKEW
    assert caller == Caller("Human", a_human().id, ORG, f"issuer/{a_human().id}", digest, ends_at)


def test_the_settings_offer_what_can_be_verified_and_nothing_else() -> None:
    assert set(OIDC_ALGORITHMS) == FITS.keys()
    assert [name for name in OIDC_ALGORITHMS if name.startswith("HS") or name == "none"] == []


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", None])
def test_a_token_may_say_that_it_is_an_access_token(authenticator: Authenticator, kind: str | None) -> None:
    token = signed(header={"typ": kind}) if kind is not None else without_type()
    assert authenticator.authenticate(token, NOW).id == a_human().id


def without_type() -> str:
    return jws.serialize_compact({"alg": "ES256", "kid": "one"}, json.dumps(claims()), key(), algorithms=["ES256"])


@pytest.mark.parametrize("audience", [AUDIENCE, "second", [AUDIENCE], ["other", AUDIENCE]])
def test_a_token_for_this_audience_among_others_is_taken(authenticator: Authenticator, audience: object) -> None:
    assert authenticator.authenticate(signed(claims(aud=audience)), NOW).id == a_human().id


def test_members_of_a_header_that_mean_nothing_here_are_passed_over(authenticator: Authenticator) -> None:
    assert authenticator.authenticate(signed(header={"x5t": "abc", "anything": {"a": 1}}), NOW).id == a_human().id


# -- what is not: nothing is said before the signature is right


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def tampered(token: str, **changed: object) -> str:
    head, _, signature = token.split(".")
    return f"{head}.{part(claims(**changed))}.{signature}"


def none() -> str:
    return f"{part({'alg': 'none', 'kid': 'one', 'typ': 'JWT'})}.{part(claims())}."


def hmac_with(secret: bytes) -> str:
    body = f"{part({'alg': 'HS256', 'kid': 'rsa', 'typ': 'JWT'})}.{part(claims())}"
    return f"{body}.{base64.urlsafe_b64encode(hmac.digest(secret, body.encode(), 'sha256')).rstrip(b'=').decode()}"


def encrypted() -> str:
    public = key()
    assert isinstance(public, ECKey)
    header = {"alg": "ECDH-ES", "enc": "A256GCM", "kid": "one", "cty": "JWT"}
    return jwe.encrypt_compact(header, signed().encode(), public, algorithms=["ECDH-ES", "A256GCM"])


def doubled() -> str:
    body = json.dumps(claims())[:-1] + f', "iss": "{ISSUER}"}}'
    return jws.serialize_compact({"alg": "ES256", "kid": "one", "typ": "JWT"}, body, key(), algorithms=["ES256"])


ATTACKS: dict[str, Callable[[], str]] = {
    "alg none": none,
    "alg none in other letters": lambda: none().replace(
        part({"alg": "none", "kid": "one", "typ": "JWT"}), part({"alg": "NONE", "kid": "one"})
    ),
    "HS256 with the public key as PEM": lambda: hmac_with(key("2048").as_pem(private=False)),
    "HS256 with the key set": lambda: hmac_with(KEYS),
    "no algorithm": lambda: f"{part({'kid': 'one'})}.{signed().split('.', 1)[1]}",
    "another algorithm that is not listed": lambda: signed(alg="ES384", kid="384", by=key("P-384")),
    "an algorithm for another type of key": lambda: signed(kid="rsa"),
    "an algorithm that its key is not for": lambda: signed(alg="PS256", kid="rs", by=key("2048")),
    "a key of another curve": lambda: signed(kid="384"),
    "the right kid and another key": lambda: signed(by=key("P-256", 2)),
    "an unknown kid": lambda: signed(kid="two"),
    "no kid": lambda: signed(kid=None),
    "a kid of many letters": lambda: signed(kid="k" * 300),
    "changed claims": lambda: tampered(signed(), email="human-3@sample.example"),
    "another issuer": lambda: signed(claims(iss="https://other.example")),
    "the issuer with a slash": lambda: signed(claims(iss=ISSUER + "/")),
    "the issuer in other letters": lambda: signed(claims(iss=ISSUER.upper())),
    "the issuer in a list": lambda: signed(claims(iss=[ISSUER])),
    "no issuer": lambda: signed(claims(iss=None)),
    "an extension that must be understood": lambda: by_hand({"crit": ["kid"]}),
    "a payload that is not encoded": lambda: by_hand({"b64": False}),
    "its own key": lambda: signed(by=key("P-256", 2), header={"jwk": published("one", key("P-256", 2))}),
    "a key in it, if only the right one": lambda: signed(header={"jwk": published("one")}),
    "a key of its own at an address": lambda: signed(header={"jku": "https://attacker.example/keys"}),
    "a certificate at an address": lambda: signed(header={"x5u": "https://attacker.example/cert"}),
    "a certificate": lambda: signed(header={"x5c": ["MII="]}),
    "a token in a token": lambda: signed(header={"cty": "JWT"}),
    "compressed": lambda: signed(header={"zip": "DEF"}),
    "encrypted": encrypted,
    "of another type": lambda: signed(header={"typ": "logout+jwt"}),
    "a proof of possession": lambda: signed(header={"typ": "dpop+jwt"}),
    "a claim twice": doubled,
    "too long": lambda: signed(claims(more="m" * TOKEN_CHARACTERS)),
    "another spelling": lambda: signed() + "=",
    "two parts": lambda: signed().rpartition(".")[0],
    "no token": lambda: "a.b.c",
}


def by_hand(header: dict[str, object]) -> str:
    """A header that the library would not write, with a good signature."""
    body = f"{part({'alg': 'ES256', 'kid': 'one', 'typ': 'JWT', **header})}.{part(claims())}"
    signature = jws.JWSRegistry.algorithms["ES256"].sign(body.encode(), key())
    return f"{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_is_refused_and_nothing_is_said_of_the_cause(authenticator: Authenticator, attack: str) -> None:
    assert authenticator.authenticate(signed(), NOW).id == a_human().id
    assert why(authenticator, ATTACKS[attack]()) == SENTENCE


# -- what its own words show is said, once the signature is right

WRONG: dict[str, tuple[dict[str, object], str]] = {
    "another audience": ({"aud": "other"}, "the token is for another audience"),
    "other audiences": ({"aud": ["other", AUDIENCE + "/"]}, "the token is for another audience"),
    "a list with more than names": ({"aud": [AUDIENCE, 1]}, "the token is for another audience"),
    "an object": ({"aud": {AUDIENCE: 1}}, "the token is for another audience"),
    "no audience": ({"aud": None}, "the token is for another audience"),
    "expired": ({"exp": AT - 30}, "the token has expired"),
    "no end": ({"exp": None}, "the token does not say when it was issued and when it expires"),
    "no beginning": ({"iat": None}, "the token does not say when it was issued and when it expires"),
    "issued later": ({"iat": AT + 31}, "the token is not valid yet"),
    "good later": ({"nbf": AT + 31}, "the token is not valid yet"),
    "a truth value for a time": ({"exp": True}, "a time in the token is not one"),
    "a text for a time": ({"exp": str(AT + 600)}, "a time in the token is not one"),
    "no end in sight": ({"exp": 10**20}, "a time in the token is not one"),
    "no end that a float could hold": ({"exp": 10**400}, "a time in the token is not one"),
    "a beginning before what a float could hold": ({"nbf": -(10**400)}, "a time in the token is not one"),
    "a negative time": ({"nbf": -1}, "a time in the token is not one"),
    "more than a day": ({"exp": AT + int(LONGEST.total_seconds()) + 1}, "the token is issued for more than 24 hours"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_signed_token_that_is_not_good_now_says_why(authenticator: Authenticator, case: str) -> None:
    changed, sentence = WRONG[case]
    assert why(authenticator, signed(claims(**changed))) == sentence


@pytest.mark.parametrize("case", WRONG)
def test_the_same_token_with_another_signature_does_not(authenticator: Authenticator, case: str) -> None:
    assert why(authenticator, signed(claims(**WRONG[case][0]), by=key("P-256", 2))) == SENTENCE


def test_the_clocks_may_differ_by_the_skew_and_no_more(authenticator: Authenticator) -> None:
    early = signed(claims(nbf=AT + 30, iat=AT + 30, exp=AT + 630))
    assert authenticator.authenticate(early, NOW).id == a_human().id
    token = signed()
    assert authenticator.authenticate(token, NOW + timedelta(seconds=629)).id == a_human().id
    assert why(authenticator, token, seconds=630) == "the token has expired"


def test_a_fraction_of_a_second_is_a_time(authenticator: Authenticator) -> None:
    assert authenticator.authenticate(signed(claims(exp=AT + 600.5)), NOW).expires_at == NOW + timedelta(seconds=630.5)


def test_a_longer_day_is_not_forgiven_by_the_skew(authenticator: Authenticator) -> None:
    assert authenticator.authenticate(signed(claims(exp=AT + int(LONGEST.total_seconds()))), NOW).id == a_human().id


def test_our_own_tokens_are_ours_alone(authenticator: Authenticator) -> None:
    own = authenticator.issue(a_human(), None, NOW).access_token
    assert authenticator.authenticate(own, NOW).credential_id == f"password/{a_human().id}"
    assert why(authenticator, own, seconds=10_000) == SENTENCE


def test_a_token_under_the_id_of_our_own_key_is_no_token_of_ours(authenticator: Authenticator) -> None:
    [kid] = authenticator.signer.kids
    assert why(authenticator, signed(kid=kid)) == SENTENCE


def test_without_an_issuer_no_such_token_is_taken(tmp_path: Path, people: People) -> None:
    alone = Authenticator(Signer.create(tmp_path), people, rate_limit=0)
    assert why(alone, signed()) == SENTENCE


def test_nothing_shown_is_no_bad_token(authenticator: Authenticator) -> None:
    with pytest.raises(Unauthenticated) as error:
        authenticator.authenticate(None, NOW)
    assert not isinstance(error.value, InvalidToken)


def test_a_signature_that_is_written_anew_is_the_same_token(authenticator: Authenticator, people: People) -> None:
    """Of an ECDSA signature anybody can write a second one: what was revoked stays so."""
    token = signed()
    head, _, signature = token.rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    again = raw[:32] + (order - int.from_bytes(raw[32:])).to_bytes(32)
    twin = f"{head}.{base64.urlsafe_b64encode(again).rstrip(b'=').decode()}"
    first, second = authenticator.authenticate(token, NOW), authenticator.authenticate(twin, NOW)
    assert twin != token
    assert first == second
    assert first.token_id is not None
    people.revoked_tokens[first.token_id] = NOW
    assert why(authenticator, token) == why(authenticator, twin) == SENTENCE
