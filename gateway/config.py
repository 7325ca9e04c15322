"""Settings of the process: flags, `PEERGATE_*` variables or a TOML file; an unknown one is refused."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

PREFIX = "PEERGATE_"
#: Variables of the client side of the command line; they are no settings of a server.
CLIENT_VARIABLES = frozenset({"PEERGATE_URL", "PEERGATE_KEY", "PEERGATE_CONFIRM", "PEERGATE_CONFIG"})
#: What is remembered goes to such an address whole.
_PRIVATE_URL = re.compile(r"https://[^/\s@]+(/\S*)?|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?(/\S*)?")
#: Too long to be guessed, and in the form that a bearer credential has.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{32,256}")

#: It is written into a header, between quotation marks.
_PUBLIC_URL = re.compile(r"https://[!$-.0-;=A-Z_a-z~\[\]]+(/[!$-;=@-\[\]-~]*)?")
_ISSUER = re.compile(r"(https://[^/\s@?#]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?)(/[^\s?#]*)?")
#: How tokens of an issuer may be signed: with a private key, which nobody has but the issuer.
OIDC_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
OIDC_SKEW_SECONDS = (0, 300)
OIDC_EMAIL = "email"
#: Claims that have a meaning already.
_CLAIMS_TAKEN = {name: "a claim of every token" for name in ("iss", "aud", "exp", "nbf", "iat", "jti", "cnf", "act")}


class ConfigError(Exception):
    """A setting that is unknown, or has a value that cannot be used; the message names it and where it came from."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How one process runs.

    `audit` is `durable` (every decision is on disk before its answer) or `relaxed` (within 50 ms of it).
    `rate_limit` is requests a minute and credential, `address_limit` requests a minute and address of those who show no good
    one, 0 for none. `deadline` is how many seconds an answer may take, 0 for no end. `log` is how a line a request is written;
    None is `json` where the standard error is no terminal. `metrics_token` is good for reading the metrics, and for nothing
    else. With `traces = otel` requests are traced as the variables `OTEL_*` say. `public_url` is the https address that discovery
    documents advertise. `embedding` is what makes vectors of texts: nothing (`off`), the model of the extra (`local`) or an
    OpenAI-compatible endpoint (`http`); None is `local` where the extra is installed. `embedding_url` is what `/embeddings`
    is added to, and the key for it is in a file, never in a setting. With `reload = watch`, policies that change on the disk
    are loaded again by themselves; with `shadow` they are asked beside those that decide until somebody promotes them. `store` is
    a directory of Cedar policies, a schema and entities that AuthZEN clients ask instead of our own store.

    `oidc_issuer` is whose access tokens are taken beside the gateway's own; every other `oidc_` setting says something of
    them. `oidc_audience` and `oidc_algorithms` are names with commas between them, `oidc_clock_skew` is in seconds.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = 8787
    policies: Path | None = None
    store: Path | None = None
    reload: Literal["off", "watch", "shadow"] = "off"
    audit: Literal["durable", "relaxed"] = "durable"
    rate_limit: int = 6000
    address_limit: int = 6000
    deadline: int = 5
    log: Literal["json", "text", "off"] | None = None
    metrics_token: str | None = field(default=None, repr=False)
    traces: Literal["off", "otel"] = "off"
    public_url: str | None = None
    workers: int = 1
    embedding: Literal["off", "local", "http"] | None = None
    embedding_url: str | None = None
    embedding_model: str | None = None
    embedding_key_file: Path | None = None
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_jwks: str | None = None
    oidc_algorithms: str | None = None
    oidc_clock_skew: int | None = None
    oidc_email_claim: str | None = None
    oidc_org_claim: str | None = None
    oidc_role_claim: str | None = None
    oidc_agent_claim: str | None = None

    def __post_init__(self) -> None:
        if self.workers != 1:
            raise ConfigError("`workers` must be 1: one process holds the store, and a second one would be refused")
        if self.audit not in ("durable", "relaxed"):
            raise ConfigError(f"`audit` must be durable or relaxed, got `{self.audit}`")
        if self.reload not in ("off", "watch", "shadow"):
            raise ConfigError(f"`reload` must be off, watch or shadow, got `{self.reload}`")
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"`port` must be from 0 to 65535, got `{self.port}`")
        for name in ("rate_limit", "address_limit", "deadline"):
            if getattr(self, name) < 0:
                raise ConfigError(f"`{name}` must be 0 or more, got `{getattr(self, name)}`")
        if self.log not in (None, "json", "text", "off"):
            raise ConfigError(f"`log` must be json, text or off, got `{self.log}`")
        if self.traces not in ("off", "otel"):
            raise ConfigError(f"`traces` must be off or otel, got `{self.traces}`")
        if self.metrics_token is not None and not _TOKEN.fullmatch(self.metrics_token):
            raise ConfigError("`metrics_token` must be 32 to 256 letters, digits or any of -._~+/=; it is not shown here")
        if self.public_url is not None and not _PUBLIC_URL.fullmatch(self.public_url):
            raise ConfigError(f"`public_url` must be an https address, got `{self.public_url}`")
        if self.embedding not in (None, "off", "local", "http"):
            raise ConfigError(f"`embedding` must be off, local or http, got `{self.embedding}`")
        if self.embedding_url is not None and not _PRIVATE_URL.fullmatch(self.embedding_url):
            raise ConfigError(f"`embedding_url` must be an https address, or one of this machine, got `{self.embedding_url}`")
        _check_oidc(self)


def listed(text: str) -> list[str]:
    """The names in a text that has commas between them."""
    return [name.strip() for name in text.split(",")]


def _check_oidc(given: Settings) -> None:
    """Refuse settings of an issuer that are not whole, or contradict each other."""
    named = {field.name: getattr(given, field.name) for field in fields(given) if field.name.startswith("oidc_")}
    given_names = [name for name, value in named.items() if value is not None]
    if given.oidc_issuer is None:
        if given_names:
            raise ConfigError(
                f"`{given_names[0]}` is set without `oidc_issuer`: set that to the `iss` of the tokens, or leave both out"
            )
        return
    if not _ISSUER.fullmatch(given.oidc_issuer):
        raise ConfigError(f"`oidc_issuer` must be an https address, or one of this machine, got `{given.oidc_issuer}`")
    if given.oidc_audience is None or not all(listed(given.oidc_audience)):
        raise ConfigError(
            "`oidc_audience` is required with `oidc_issuer`: what `aud` says of a token that is meant for this gateway"
        )
    if given.oidc_jwks is None:
        raise ConfigError(
            "`oidc_jwks` is required with `oidc_issuer`: the address of its keys (its `jwks_uri`), or a file that holds them"
        )
    if "://" in given.oidc_jwks and not _PRIVATE_URL.fullmatch(given.oidc_jwks):
        raise ConfigError(f"`oidc_jwks` must be an https address, one of this machine, or a file, got `{given.oidc_jwks}`")
    for name in listed(given.oidc_algorithms) if given.oidc_algorithms is not None else []:
        if name not in OIDC_ALGORITHMS:
            raise ConfigError(f"`oidc_algorithms` must be of {', '.join(OIDC_ALGORITHMS)}, got `{name}`")
    least, most = OIDC_SKEW_SECONDS
    if given.oidc_clock_skew is not None and not least <= given.oidc_clock_skew <= most:
        raise ConfigError(f"`oidc_clock_skew` must be from {least} to {most} seconds, got `{given.oidc_clock_skew}`")
    email = given.oidc_email_claim or OIDC_EMAIL
    seen = {**_CLAIMS_TAKEN, f"{email}_verified": "what says that the address is verified"}
    if given.oidc_email_claim is None:
        seen[email] = "the e-mail address"
    for name in (name for name in given_names if name.endswith("_claim")):
        if named[name] in seen:
            raise ConfigError(f"`{name}` must be a claim of its own, got `{named[name]}`, which is {seen[named[name]]}")
        seen[named[name]] = f"`{name}`"


_PATHS = frozenset({"data", "policies", "store", "embedding_key_file"})
_NUMBERS = frozenset({"port", "rate_limit", "address_limit", "deadline", "workers", "oidc_clock_skew"})
#: Shown in no message, and no flag: every user of the machine sees command lines.
SECRETS = frozenset({"metrics_token"})


def load(flags: Mapping[str, object], environ: Mapping[str, str], file: Path | None = None) -> Settings:
    """Settings from a TOML file, then the environment, then flags; the later wins.

    Raises:
        ConfigError: unknown name, unusable value, or no `data`.
    """
    merged: dict[str, object] = {}
    if file is not None:
        try:
            merged |= _known(tomllib.loads(file.read_text("utf-8")), f"in {file}")
        except OSError as wrong:
            raise ConfigError(f"the settings file {file} cannot be read: {wrong.strerror}") from wrong
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as wrong:
            raise ConfigError(f"the settings file {file} cannot be read: {wrong}") from wrong
    variables = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environ.items()
        if name.startswith(PREFIX) and name not in CLIENT_VARIABLES
    }
    merged |= _known(variables, "in the environment")
    merged |= _known({name: value for name, value in flags.items() if value is not None}, "as a flag")
    if "data" not in merged:
        raise ConfigError("`data` is required: the directory that holds the store (--data DIR)")
    return Settings(**merged)  # type: ignore[arg-type]  # each was read by its type


def _known(given: Mapping[str, object], where: str) -> dict[str, object]:
    names = {each.name for each in fields(Settings)}
    read: dict[str, object] = {}
    for name, value in given.items():
        if name not in names:
            raise ConfigError(f"unknown setting `{name}` {where}; known are {', '.join(sorted(names))}")
        read[name] = _number(name, value, where) if name in _NUMBERS else _text(name, value, where)
    return read


def _text(name: str, value: object, where: str) -> object:
    if not value or not isinstance(value, str | Path):
        raise ConfigError(f"`{name}` {where} must be a text that is not empty{'' if name in SECRETS else f', got `{value}`'}")
    return Path(value) if name in _PATHS else str(value)


def _number(name: str, value: object, where: str) -> int:
    """A whole number, or its ASCII digits: never a fraction cut short, nor `true` as 1."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value):
        return int(value)
    raise ConfigError(f"`{name}` {where} must be a whole number, got `{value}`")
