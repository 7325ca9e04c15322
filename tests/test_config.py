"""Settings: where they come from, which wins, and what is refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from gateway.config import CLIENT_VARIABLES, ConfigError, Settings, load


def test_only_a_data_directory_has_to_be_given() -> None:
    assert load({"data": "d"}, {}) == Settings(
        data=Path("d"),
        host="127.0.0.1",
        port=8787,
        policies=None,
        audit="durable",
        rate_limit=6000,
        address_limit=6000,
        deadline=5,
        log=None,
        metrics_token=None,
        traces="off",
        public_url=None,
        workers=1,
        embedding=None,
        embedding_url=None,
        embedding_model=None,
        embedding_key_file=None,
        oidc_issuer=None,
        oidc_audience=None,
        oidc_jwks=None,
        oidc_algorithms=None,
        oidc_clock_skew=None,
        oidc_email_claim=None,
        oidc_org_claim=None,
        oidc_role_claim=None,
        oidc_agent_claim=None,
    )
    with pytest.raises(ConfigError, match=r"^`data` is required: the directory that holds the store"):
        load({}, {})


def test_a_flag_wins_over_a_variable_and_a_variable_over_a_file(tmp_path: Path) -> None:
    file = tmp_path / "peergate.toml"
    file.write_text('data = "file"\nhost = "file"\nport = 1\nrate_limit = 1\npolicies = "file"\n')
    environ = {
        "PEERGATE_HOST": "environment",
        "PEERGATE_PORT": "2",
        "PEERGATE_RATE_LIMIT": "0",
        "HOME": "/",
        "peergate_host": "x",
    }
    read = load({"port": 3, "host": None, "audit": "relaxed"}, environ, file)
    assert (read.data, read.host, read.port, read.rate_limit, read.policies, read.audit) == (
        Path("file"),
        "environment",
        3,
        0,
        Path("file"),
        "relaxed",
    )


def test_every_setting_has_a_variable() -> None:
    values = {
        "data": "d",
        "host": "::1",
        "port": "0",
        "policies": "p",
        "store": "s",
        "audit": "relaxed",
        "rate_limit": "5",
        "address_limit": "7",
        "deadline": "9",
        "log": "text",
        "metrics_token": "m" * 32,
        "traces": "otel",
        "reload": "watch",
        "public_url": "https://gate.example",
        "workers": "1",
        "embedding": "http",
        "embedding_url": "http://localhost:11434/v1",
        "embedding_model": "m",
        "embedding_key_file": "k",
        "oidc_issuer": "https://issuer.example/realm",
        "oidc_audience": "https://gate.example, https://gate.example/mcp",
        "oidc_jwks": "https://issuer.example/keys",
        "oidc_algorithms": "ES256,RS256",
        "oidc_clock_skew": "0",
        "oidc_email_claim": "mail",
        "oidc_org_claim": "org",
        "oidc_role_claim": "role",
        "oidc_agent_claim": "agent",
    }
    read = load({}, {f"PEERGATE_{name.upper()}": value for name, value in values.items()})
    assert {field.name: str(getattr(read, field.name)) for field in fields(Settings)} == values


def test_variables_of_the_command_line_client_are_no_settings() -> None:
    assert load({"data": "d"}, dict.fromkeys(CLIENT_VARIABLES, "x")) == load({"data": "d"}, {})


@pytest.mark.parametrize(
    ("flags", "environ", "toml", "sentence"),
    [
        (
            {"prot": 1},
            {},
            "",
            "unknown setting `prot` as a flag; known are address_limit, audit, data, deadline, embedding, embedding_key_file, "
            "embedding_model, embedding_url, host, log, metrics_token, oidc_agent_claim, oidc_algorithms, oidc_audience, "
            "oidc_clock_skew, oidc_email_claim, oidc_issuer, oidc_jwks, oidc_org_claim, oidc_role_claim, policies, port, "
            "public_url, rate_limit, reload, store, traces, workers",
        ),
        ({}, {"PEERGATE_RATELIMIT": "1"}, "", "unknown setting `ratelimit` in the environment; known are "),
        ({}, {"PEERGATE_": "1"}, "", "unknown setting `` in the environment; known are "),
        ({}, {}, "Port = 1", "unknown setting `Port` in "),
        ({}, {}, "[server]\nport = 1", "unknown setting `server` in "),
    ],
)
def test_an_unknown_setting_is_refused_wherever_it_comes_from(
    tmp_path: Path, flags: dict[str, object], environ: dict[str, str], toml: str, sentence: str
) -> None:
    file = tmp_path / "peergate.toml"
    file.write_text(toml)
    with pytest.raises(ConfigError) as wrong:
        load({"data": "d", **flags}, environ, file)
    assert str(wrong.value).startswith(sentence)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("port", value) for value in ("", "x", " 80", "80 ", "8_0", "8.0", "\u0668\u0660", "0x50", "-1", "65536", "9" * 30)),
        *(("port", value) for value in (True, 80.5, [80], -1, 65536)),
        *((name, value) for name in ("rate_limit", "address_limit", "deadline") for value in ("-1", "many", False, 1.0)),
        *(("log", value) for value in ("", "JSON", "xml", True)),
        *(("traces", value) for value in ("", "on", "otlp", True)),
        *(("metrics_token", value) for value in ("", "m" * 31, "m" * 257, "m" * 32 + " ", "é" * 32, 5)),
        *(("workers", value) for value in ("2", "0", 2, "-1", True)),
        *(("audit", value) for value in ("", "off", "Durable", True)),
        *(
            ("public_url", value)
            for value in (
                "",
                "http://gate.example",
                "gate.example",
                "https://",
                "https:///x",
                "HTTPS://x",
                5,
                'https://gate.example/"',
                "https://gate.example?x",
            )
        ),
        *(("embedding", value) for value in ("", "on", "Local", True)),
        *(
            ("embedding_url", value)
            for value in ("", "http://models.example/v1", "https://", "https://key@models.example", "http://localhost.example", 5)
        ),
        *(("embedding_key_file", value) for value in ("", 5)),
        *(("data", value) for value in ("", 5, True, ["d"])),
        *(("policies", value) for value in ("", 5)),
        *(("host", value) for value in ("", 5)),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError) as wrong:
        load({"data": "d", name: value}, {})
    assert str(wrong.value).startswith(f"`{name}` ")
    if isinstance(value, str):
        with pytest.raises(ConfigError):
            load({"data": "d"}, {f"PEERGATE_{name.upper()}": value})


OIDC = {"oidc_issuer": "https://issuer.example", "oidc_audience": "a", "oidc_jwks": "https://issuer.example/keys"}


@pytest.mark.parametrize("name", [field.name for field in fields(Settings) if field.name.startswith("oidc_")])
def test_nothing_is_said_of_an_issuer_that_is_not_named(name: str) -> None:
    if name != "oidc_issuer":
        with pytest.raises(ConfigError, match=f"^`{name}` is set without `oidc_issuer`: set that to the `iss` of the tokens"):
            load({"data": "d", name: 0 if name == "oidc_clock_skew" else "x"}, {})


@pytest.mark.parametrize("name", ["oidc_audience", "oidc_jwks"])
def test_an_issuer_needs_an_audience_and_keys(name: str) -> None:
    given = {key: value for key, value in OIDC.items() if key != name}
    with pytest.raises(ConfigError, match=f"^`{name}` is required with `oidc_issuer`: "):
        load({"data": "d", **given}, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("oidc_issuer", value) for value in ("issuer", "http://issuer.example", "https://i.example?a", "https://i.example#a")),
        *(
            ("oidc_issuer", value)
            for value in ("https://user@i.example", "https://", "ftp://i.example", "http://localhost.example")
        ),
        *(("oidc_audience", value) for value in (",", "a,", "a,,b", " ")),
        *(("oidc_jwks", value) for value in ("http://issuer.example/keys", "file:///keys.json", "https://user@i.example/keys")),
        *(("oidc_algorithms", value) for value in ("none", "HS256", "ES256, HS512", "es256", "ES256,", "RSA-OAEP", "ES256K")),
        *(("oidc_clock_skew", value) for value in (-1, 301, "many", True)),
        *(("oidc_email_claim", value) for value in ("iss", "exp", "")),
        *(("oidc_org_claim", value) for value in ("aud", "email", "email_verified")),
        *(("oidc_role_claim", value) for value in ("cnf", "email")),
        *(("oidc_agent_claim", value) for value in ("act", "iat")),
    ],
)
def test_a_setting_of_an_issuer_that_cannot_be_used_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^`{name}` "):
        load({"data": "d", **OIDC, name: value}, {})


def test_two_claims_of_one_name_contradict_each_other() -> None:
    with pytest.raises(ConfigError) as wrong:
        load({"data": "d", **OIDC, "oidc_org_claim": "x", "oidc_agent_claim": "x"}, {})
    assert str(wrong.value) == "`oidc_agent_claim` must be a claim of its own, got `x`, which is `oidc_org_claim`"


@pytest.mark.parametrize("where", ["keys.json", "http://localhost:1/keys", "http://127.0.0.1:1/", "http://[::1]:1/keys"])
def test_keys_may_be_in_a_file_or_on_this_machine(where: str) -> None:
    assert load({"data": "d", **OIDC, "oidc_jwks": where}, {}).oidc_jwks == where


def test_more_than_one_worker_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigError) as wrong:
        load({"data": "d", "workers": 4}, {})
    assert str(wrong.value) == "`workers` must be 1: one process holds the store, and a second one would be refused"


@pytest.mark.parametrize("content", [b"data =", b"\xff", None], ids=["no TOML", "no UTF-8", "no file"])
def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "peergate.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as wrong:
        load({"data": "d"}, {}, file)
    assert str(wrong.value).startswith(f"the settings file {file} cannot be read: ")
    assert (content is None) == str(wrong.value).endswith("cannot be read: No such file or directory")
