"""What authentication needs to know of the principals; the authorization state of the store is one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from gateway.model.records import Agent, Credential, Human, PlatformApp


class Directory(Protocol):
    """Principals and credentials as they are now: whoever was removed is not in it."""

    @property
    def humans(self) -> Mapping[str, Human]: ...

    @property
    def agents(self) -> Mapping[str, Agent]: ...

    @property
    def apps(self) -> Mapping[str, PlatformApp]: ...

    @property
    def credentials(self) -> Mapping[str, Credential]: ...

    @property
    def revoked_tokens(self) -> Mapping[str, datetime]: ...

    def credential_with_hash(self, secret_hash: str) -> Credential | None: ...
