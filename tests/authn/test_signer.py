"""Tokens: what is signed is read back, and nothing else is."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import stat
import warnings
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from joserfc import jwt
from joserfc.jwk import OKPKey

from gateway.authn import signer as signer_module
from gateway.authn.claims import Claims
from gateway.authn.keyfile import KeyFileError
from gateway.authn.signer import FILE, OVERLAP, Signer
from tests.authn.builders import NOW, ORG, an_agent

T0 = int(NOW.timestamp())
CLAIMS = Claims("Agent", an_agent().id, ORG, "", 1, T0, T0 + 900, "token-1")


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer.create(tmp_path)


def part(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(signer: Signer, header: dict[str, object], claims: object) -> str:
    """A token with any header and claims, under the signer's own key."""
    key = signer._keys[signer.kids[-1]].jwk
    message = f"{part(header)}.{part(claims)}"
    private = key.private_key
    assert private is not None
    return f"{message}.{part(private.sign(message.encode()))}"  # type: ignore[union-attr,call-arg]


def good_header(signer: Signer) -> dict[str, object]:
    return {"alg": "Ed25519", "kid": signer.kids[-1], "typ": "JWT"}


def test_a_signed_token_is_read_back_whole(signer: Signer) -> None:
    token = signer.sign(CLAIMS, ["a"])
    assert token.count(".") == 2
    assert signer.verify(token, NOW) == CLAIMS
    assert signer.verify(token, NOW) == CLAIMS


def test_the_claims_have_their_names_on_the_wire(signer: Signer) -> None:
    payload = signer.sign(CLAIMS, ["a", "b"]).split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(payload + "==")) == {
        "sub": f"agent:{an_agent().id}",
        "org": ORG,
        "scopes": ["a", "b"],
        "iat": T0,
        "exp": T0 + 900,
        "jti": "token-1",
        "gen": 1,
        "cid": "",
    }


def test_a_token_ends_at_its_last_second_and_not_after(signer: Signer) -> None:
    token = signer.sign(CLAIMS, [])
    assert signer.verify(token, NOW + timedelta(seconds=900) - timedelta(microseconds=1)) == CLAIMS
    assert signer.verify(token, NOW + timedelta(seconds=900)) is None


def test_a_remembered_token_ends_as_well(signer: Signer) -> None:
    token = signer.sign(CLAIMS, [])
    assert signer.verify(token, NOW) == CLAIMS
    assert signer.verify(token, NOW + timedelta(seconds=900)) is None


def test_a_token_from_the_future_is_refused(signer: Signer) -> None:
    token = signer.sign(replace(CLAIMS, issued_at=T0 + 1), [])
    assert signer.verify(token, NOW) is None
    assert signer.verify(token, NOW + timedelta(seconds=1)) is not None


def test_no_algorithm_is_refused(signer: Signer) -> None:
    claims = CLAIMS.written([])
    for name in ("none", "None", "NONE", ""):
        header = {**good_header(signer), "alg": name}
        assert signer.verify(f"{part(header)}.{part(claims)}.", NOW) is None
        assert signer.verify(signed(signer, header, claims), NOW) is None


def test_the_public_key_is_no_shared_secret(signer: Signer) -> None:
    key = signer._keys[signer.kids[-1]].jwk
    raw = key.public_key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    pem = key.public_key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    message = f"{part({**good_header(signer), 'alg': 'HS256'})}.{part(CLAIMS.written([]))}"
    for secret in (raw, pem, str(key.as_dict(private=False)["x"]).encode()):
        forged = part(hmac.new(secret, message.encode(), hashlib.sha256).digest())
        assert signer.verify(f"{message}.{forged}", NOW) is None


def test_another_key_is_refused_whatever_id_it_claims(signer: Signer) -> None:
    stranger = OKPKey.generate_key("Ed25519")
    token = jwt.encode(good_header(signer), CLAIMS.written([]), stranger, algorithms=["Ed25519"])
    assert signer.verify(token, NOW) is None


@pytest.mark.parametrize("kid", ["unknown", "", "../signing.json", None, 7, ["a"], {"a": 1}])
def test_an_unknown_key_id_is_refused(signer: Signer, kid: object) -> None:
    assert signer.verify(signed(signer, {**good_header(signer), "kid": kid}, CLAIMS.written([])), NOW) is None


@pytest.mark.parametrize(
    "change",
    [
        {"typ": "at+jwt"},
        {"typ": None},
        {"crit": ["exp"]},
        {"jku": "https://elsewhere.example/keys"},
        {"jwk": {"kty": "OKP"}},
        {"b64": False},
        {"alg": "EdDSA"},
        {"zip": "DEF"},
    ],
)
def test_a_header_with_anything_else_in_it_is_refused(signer: Signer, change: dict[str, object]) -> None:
    assert signer.verify(signed(signer, good_header(signer), CLAIMS.written([])), NOW) == CLAIMS
    assert signer.verify(signed(signer, {**good_header(signer), **change}, CLAIMS.written([])), NOW) is None


def test_every_changed_character_is_noticed(signer: Signer) -> None:
    token = signer.sign(CLAIMS, [])
    for index, character in enumerate(token):
        other = "A" if character != "A" else "B"
        assert signer.verify(token[:index] + other + token[index + 1 :], NOW) is None, index


def test_the_spare_bits_of_the_last_character_are_no_second_spelling(signer: Signer) -> None:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    token = signer.sign(CLAIMS, [])
    accepted = [last for last in alphabet if signer.verify(token[:-1] + last, NOW) is not None]
    assert accepted == [token[-1]]


def test_other_forms_of_a_good_token_are_refused(signer: Signer) -> None:
    token = signer.sign(CLAIMS, [])
    head, body, signature = token.split(".")
    for form in (
        f"{head}.{body}",
        f"{head}.{body}.",
        f"{token}.{signature}",
        f"{token}.",
        f".{token}",
        f"{token}=",
        f"{head}=.{body}.{signature}",
        f" {token}",
        f"{token}\n",
        f"{head}.{body}.{signature[:-1]}",
        f"{head}.{body}.\u00e9{signature}",
        f"{head}.{body}.\ud800",
        f"{head}..{signature}",
        "..",
        "",
        "." * 10_000,
        "a" * 10_000,
        f"{'a' * 10_000}.{body}.{signature}",
        f"{part(b'[' * 5_000)}.{body}.{signature}",
        f"{part(b'[]')}.{body}.{signature}",
        f"{part(bytes([255, 254]))}.{body}.{signature}",
    ):
        assert signer.verify(form, NOW) is None, form[:60]


@pytest.mark.parametrize(
    "change",
    [
        {"sub": None},
        {"sub": "admin:" + an_agent().id},
        {"sub": an_agent().id},
        {"sub": "agent:" + an_agent().id.upper().replace("0", "A")},
        {"sub": f"agent:{an_agent().id}\n"},
        {"sub": ["agent:" + an_agent().id]},
        {"org": 7},
        {"jti": ""},
        {"jti": None},
        {"cid": None},
        {"gen": True},
        {"gen": "1"},
        {"exp": None},
        {"exp": str(T0 + 900)},
        {"exp": T0 + 900.5},
        {"exp": True},
        {"exp": -1},
        {"iat": None},
        {"iat": False},
    ],
)
def test_a_claim_that_is_missing_or_of_another_type_is_refused(signer: Signer, change: dict[str, object]) -> None:
    claims = {name: value for name, value in {**CLAIMS.written([]), **change}.items() if value is not None}
    assert signer.verify(signed(signer, good_header(signer), claims), NOW) is None


def test_claims_that_are_no_object_are_refused(signer: Signer) -> None:
    for claims in ([], "text", 7, None, b"\xff", b"", b"[" * 5_000):
        assert signer.verify(signed(signer, good_header(signer), claims), NOW) is None


def test_tokens_are_signed_without_a_warning(signer: Signer) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert signer.verify(signer.sign(CLAIMS, []), NOW) == CLAIMS


def test_only_good_tokens_are_remembered_and_not_without_bound(signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signer_module, "CACHED_TOKENS", 2)
    for number in range(5):
        token = signer.sign(replace(CLAIMS, token_id=str(number)), [])
        assert signer.verify(token, NOW) is not None
        assert signer.verify(token[:-10], NOW) is None
    assert len(signer._verified) == 2


def test_keys_are_read_back_from_the_data_directory(tmp_path: Path) -> None:
    token = Signer.create(tmp_path).sign(CLAIMS, [])
    assert Signer.load(tmp_path).verify(token, NOW) == CLAIMS


def test_the_key_file_is_private(tmp_path: Path) -> None:
    signer = Signer.create(tmp_path)
    for _ in range(2):
        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / FILE).parent.stat().st_mode) == 0o700
        assert sorted(path.name for path in (tmp_path / FILE).parent.iterdir()) == ["signing.json"]
        signer.rotate(NOW)


def test_keys_are_never_made_over_others(tmp_path: Path) -> None:
    Signer.create(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(KeyFileError, match="exists already"):
        Signer.create(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o666, 0o610])
def test_a_key_file_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    Signer.create(tmp_path)
    (tmp_path / FILE).chmod(mode)
    with pytest.raises(KeyFileError, match="chmod 600"):
        Signer.load(tmp_path)


def test_a_key_directory_open_to_others_is_refused(tmp_path: Path) -> None:
    Signer.create(tmp_path)
    (tmp_path / FILE).parent.chmod(0o755)
    with pytest.raises(KeyFileError, match="chmod 700"):
        Signer.load(tmp_path)


def test_a_link_in_place_of_the_key_file_is_refused(tmp_path: Path) -> None:
    Signer.create(tmp_path)
    (tmp_path / FILE).rename(tmp_path / "elsewhere.json")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(KeyFileError, match="cannot be opened"):
        Signer.load(tmp_path)


def test_a_missing_key_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="was set up"):
        Signer.load(tmp_path)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"signing": "a", "keys": []}', '{"signing": "a", "keys": [{"kid": "a"}]}', "nonsense"]
)
def test_a_damaged_key_file_is_refused_with_a_sentence(tmp_path: Path, content: str) -> None:
    Signer.create(tmp_path)
    (tmp_path / FILE).write_text(content)
    with pytest.raises(KeyFileError, match="key"):
        Signer.load(tmp_path)


def test_a_key_without_its_private_half_cannot_sign_and_is_refused_at_load(tmp_path: Path) -> None:
    Signer.create(tmp_path)
    stored = json.loads((tmp_path / FILE).read_text())
    del stored["keys"][0]["d"]
    (tmp_path / FILE).write_text(json.dumps(stored))
    with pytest.raises(KeyFileError, match="no key to sign with"):
        Signer.load(tmp_path)


def test_after_a_rotation_old_tokens_hold_until_the_overlap_ends(tmp_path: Path) -> None:
    signer = Signer.create(tmp_path)
    old = signer.kids[-1]
    lasting = signer.sign(replace(CLAIMS, expires_at=T0 + 10**6), [])
    new = signer.rotate(NOW)
    assert signer.kids == (old, new)
    for reader in (signer, Signer.load(tmp_path)):
        assert json.loads(base64.urlsafe_b64decode(reader.sign(CLAIMS, []).split(".")[0] + "=="))["kid"] == new
        assert reader.verify(lasting, NOW + OVERLAP - timedelta(microseconds=1)) is not None
        assert reader.verify(lasting, NOW + OVERLAP) is None


def test_a_rotation_without_overlap_ends_remembered_tokens_at_once(signer: Signer) -> None:
    token = signer.sign(CLAIMS, [])
    assert signer.verify(token, NOW) == CLAIMS
    signer.rotate(NOW, overlap=timedelta(0))
    assert signer.verify(token, NOW) is None


def test_a_rotation_leaves_only_the_public_half_of_the_old_key(tmp_path: Path) -> None:
    signer = Signer.create(tmp_path)
    old = signer.kids[-1]
    new = signer.rotate(NOW)
    stored = json.loads((tmp_path / FILE).read_text())
    assert {entry["kid"]: "d" in entry for entry in stored["keys"]} == {old: False, new: True}


def test_keys_whose_overlap_has_ended_are_dropped_by_the_next_rotation(tmp_path: Path) -> None:
    signer = Signer.create(tmp_path)
    first = signer.kids[-1]
    second = signer.rotate(NOW)
    third = signer.rotate(NOW + OVERLAP)
    assert signer.kids == (second, third)
    assert Signer.load(tmp_path).kids == (second, third)
    assert first not in (tmp_path / FILE).read_text()


def test_a_key_shows_no_secret_when_printed(signer: Signer) -> None:
    key = signer._keys[signer.kids[-1]]
    assert str(key.jwk.as_dict(private=True)["d"]) not in repr(key) + repr(signer) + repr(vars(signer))
