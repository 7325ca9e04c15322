"""What authentication needs to know of the principals; the authorization state of the store is one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from gateway.model.memory import RemoteConnection
from gateway.model.records import Agent, Credential, Human, Org, PlatformApp


class Directory(Protocol):
    """Principals and credentials as they are now: whoever was removed is not in it."""

    @property
    def orgs(self) -> Mapping[str, Org]:
        """Organisations by id."""

    @property
    def humans(self) -> Mapping[str, Human]:
        """Humans by id."""

    @property
    def agents(self) -> Mapping[str, Agent]:
        """Agents by id, inactive ones too."""

    @property
    def apps(self) -> Mapping[str, PlatformApp]:
        """Platform applications by id."""

    @property
    def remote_connections(self) -> Mapping[tuple[str, str], RemoteConnection]:
        """Connections to remote agents by organisation and id, ended ones too."""

    @property
    def credentials(self) -> Mapping[str, Credential]:
        """Long-lived keys by id."""

    @property
    def revoked_tokens(self) -> Mapping[str, datetime]:
        """When each ended session's token would have ended, by the token's id."""

    def human_with_email(self, email: str) -> Human | None:
        """The human with this normal address, in whichever organisation."""

    def credential_with_hash(self, secret_hash: str) -> Credential | None:
        """The key whose secret has this hash."""
