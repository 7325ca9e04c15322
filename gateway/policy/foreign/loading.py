"""Loading a foreign store: the whole directory, or every reason why not."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from gateway.policy.bundle import SCHEMA, Bundle
from gateway.policy.files import FileRefused, read
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.foreign import entities
from gateway.policy.foreign.entities import ENTITIES, MAX_BYTES
from gateway.policy.foreign.overlay import Overlays
from gateway.policy.foreign.store import ForeignStore, hash_of
from gateway.policy.reading import reads
from gateway.policy.schema import Schema

ALIASES = "authzen.toml"
POLICIES = "policies"


def load(directory: Path) -> ForeignStore:
    """Returns the store that a directory holds: `schema.cedarschema`, `policies/`, `entities.json` and, if it is there,
    `authzen.toml`. Raises `PolicyError`.

    What guards the process and the answer holds for its policies as for our own; how they are written is its own affair.
    """
    bundle = Bundle.load(directory / SCHEMA, directory / POLICIES, house_rules=False, rows=())
    said, read = bundle.types, reads(bundle.trees.values())
    stored = entities.load(bundle, _text(directory / ENTITIES), read)
    path = directory / ALIASES
    aliases = _aliases(_text(path), said) if os.path.lexists(path) else {}
    overlays = Overlays(bundle, said, stored, read)
    return ForeignStore(bundle, said, stored, aliases, overlays, hash_of(bundle, stored, aliases), said.enumerated)


def _aliases(text: str, said: Schema) -> Mapping[str, str]:
    try:
        read = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of a number too long, or nested too deep
        raise PolicyError([Finding(ALIASES, 0, "", str(error))]) from error
    wrong = [name for name, type_ in read.items() if not isinstance(type_, str) or type_ not in said.entities]
    if wrong:
        raise PolicyError([Finding(ALIASES, 0, name, "is not set to an entity type of the schema") for name in wrong])
    return {name: str(type_) for name, type_ in read.items()}


def _text(path: Path) -> str:
    try:
        return read(path, MAX_BYTES).decode()
    except FileRefused as refused:
        raise PolicyError([Finding(path.name, 0, "", str(refused))]) from refused
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError([Finding(path.name, 0, "", f"cannot be read: {type(error).__name__}")]) from error
