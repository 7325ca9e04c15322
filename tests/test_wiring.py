"""What a process is made of: opened twice, refused with a sentence, and let go of when opening fails."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import stat
from pathlib import Path

import pytest

from gateway import wiring
from gateway.authn.keyfile import KeyFileError
from gateway.authn.signer import Signer
from gateway.config import ConfigError, Settings
from gateway.errors import Conflict
from gateway.operations.call import Services
from gateway.policy.finding import PolicyError
from gateway.store import installation
from gateway.store.db import Database
from gateway.store.faults import StoreRefused
from gateway.wiring import OPERATIONS, clock, create_data, load_bundle, open_services, refuse_unfinished, set_up_org, shipped
from tests.builders import Clock
from tests.world import ROOT


def opened(data: Path, **settings: object) -> Services:
    return open_services(Settings(data=data, **settings), now=Clock())  # type: ignore[arg-type]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    create_data(tmp_path / "data")
    return tmp_path / "data"


def test_a_new_data_directory_is_its_owners_alone(data: Path) -> None:
    for file in (data, *data.rglob("*")):
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


def test_a_second_data_directory_in_the_same_place_is_refused(data: Path) -> None:
    services = opened(data)
    set_up_org(services, name="Sample", email="owner@sample.example")
    services.database.close()
    with pytest.raises(StoreRefused, match="there is a database in"):
        create_data(data)
    refuse_unfinished(data)


def test_what_an_interrupted_start_left_behind_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"

    def interrupted(_: Path) -> Signer:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Signer, "create", interrupted)
        with pytest.raises(KeyboardInterrupt):
            create_data(data)
    create_data(data)
    first = (data / "keys" / "signing.json").read_bytes()
    with pytest.raises(
        StoreRefused, match=re.escape(f"`{data}` has no organisation yet: finish it with `peergate init --data {data}`")
    ):
        refuse_unfinished(data)
    create_data(data)
    assert (data / "keys" / "signing.json").read_bytes() != first
    services = opened(data)
    with pytest.raises(StoreRefused, match="another process holds"):
        create_data(data)
    set_up_org(services, name="Sample", email="owner@sample.example")
    services.database.close()
    refuse_unfinished(data)


@pytest.mark.parametrize("late", ["PolicyEngine", "Authenticator"])
def test_a_start_that_fails_late_lets_go_of_the_directory(data: Path, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError

    with monkeypatch.context() as patched:
        patched.setattr(wiring, late, broken)
        with pytest.raises(ValueError, match=r"^$"):
            opened(data)
    opened(data).database.close()


def test_an_organisation_begins_with_an_owner_whose_secrets_are_kept_nowhere(data: Path) -> None:
    services = opened(data)
    made = set_up_org(services, name="Sample", email="owner@sample.example")
    human, org = services.state.humans[made.owner_id], services.state.orgs[made.org_id]
    [key] = services.state.credentials_of("Human", made.owner_id)
    assert (org.name, human.role, human.email, human.org_id) == ("Sample", "owner", made.email, org.id)
    assert (made.api_key[:4], key.org_id, key.expires_at) == ("1ck_", org.id, None)
    assert not {made.password, made.api_key} & set(re.findall(r"[\w-]+", repr((made, human, key, org))))
    rows = services.database.read_sync(
        lambda rows: rows.all("SELECT action, principal_type, principal_id, details, bundle FROM log")
    )
    assert rows == [("org.created", "Operator", "local", json.dumps({"owner_id": made.owner_id}, separators=(",", ":")), "")]
    services.database.close()
    secrets = (made.password.encode(), made.api_key.encode())
    assert [file for file in data.rglob("*") if file.is_file() and any(secret in file.read_bytes() for secret in secrets)] == []


def test_two_organisations_cannot_have_an_owner_with_one_address(data: Path) -> None:
    services = opened(data)
    set_up_org(services, name="one", email="owner@sample.example")
    with pytest.raises(Conflict):
        set_up_org(services, name="two", email="owner@sample.example")
    assert [org.name for org in services.state.orgs.values()] == ["one"]
    services.database.close()
    again = opened(data)
    assert [org.name for org in again.state.orgs.values()] == ["one"]
    again.database.close()


def test_the_salt_is_made_once_and_the_bundle_is_kept_by_its_hash(data: Path) -> None:
    salts = []
    for _ in range(2):
        services = opened(data)
        salts.append(installation.read_salt(services.database))
        bundle = services.access.engine.bundle
        [kept] = services.database.read_sync(lambda rows: rows.all("SELECT hash, body FROM bundles"))
        assert kept[0] == bundle.hash
        assert json.loads(kept[1]) == {
            "schema": bundle.schema_text,
            "policies": {p.id: p.text for p in bundle.policies.values()},
            "places": {p.id: [p.file, p.line] for p in bundle.policies.values()},
        }
        services.database.close()
    assert salts[0] == salts[1]
    assert (len(salts[0][0]), salts[0][1]) == (installation.SALT_BYTES, None)


def test_slices_of_two_data_directories_have_different_hashes(tmp_path: Path) -> None:
    hashes = []
    for name in ("a", "b"):
        create_data(tmp_path / name)
        services = opened(tmp_path / name)
        hashes.append(services.access.engine.slice().hash)
        services.database.close()
    assert hashes[0] != hashes[1]
    assert hashlib.sha256(b"[]").hexdigest() not in hashes


def own_policies(directory: Path) -> Path:
    shutil.copytree(ROOT / "policies", directory / "policies")
    return directory / "policies"


def test_what_was_shipped_decides_unless_a_directory_is_named(tmp_path: Path) -> None:
    assert shipped() == ROOT
    plain = load_bundle(Settings(data=tmp_path))
    own = own_policies(tmp_path)
    assert load_bundle(Settings(data=tmp_path, policies=own)).hash == plain.hash
    permit = own / "me" / "read.cedar"
    permit.write_text(permit.read_text().replace("principal is Human", 'principal in Role::"owner"'))
    assert load_bundle(Settings(data=tmp_path, policies=own)).hash != plain.hash


def test_a_guardrail_of_ones_own_is_welcome_beside_the_shipped_ones(tmp_path: Path) -> None:
    own = own_policies(tmp_path)
    more = '@id("guardrails/mine")\n@reason("Nobody does anything.")\nforbid (principal, action, resource);\n'
    (own / "guardrails" / "mine.cedar").write_text(more)
    assert "guardrails/mine" in load_bundle(Settings(data=tmp_path, policies=own)).policies


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "policies" / "guardrails").glob("*.cedar")))
def test_a_guardrail_that_bears_the_name_and_forbids_nothing_is_refused(tmp_path: Path, name: str) -> None:
    file = own_policies(tmp_path) / "guardrails" / name
    text = file.read_text()
    condition = max(text.rfind(f"\n{word}") for word in ("when", "unless"))
    file.write_text(f"{text[:condition]}\nwhen {{ false }};\n")
    with pytest.raises(PolicyError, match=f"^guardrails/{name}:[0-9]+: `guardrails/.*`: is not the guardrail as it was shipped$"):
        load_bundle(Settings(data=tmp_path, policies=file.parents[1]))


def test_another_schema_is_refused_because_a_group_in_it_may_be_empty(tmp_path: Path) -> None:
    own = own_policies(tmp_path)
    shipped_schema = (ROOT / "schema.cedarschema").read_text()
    for place in (own, own.parent):
        (place / "schema.cedarschema").write_text(shipped_schema)
        load_bundle(Settings(data=tmp_path, policies=own))
        (place / "schema.cedarschema").write_text(shipped_schema.replace('"peer.read" in ["observed"]', '"peer.read"'))
        with pytest.raises(ConfigError, match=r"schema\.cedarschema is not the schema that this gateway decides by"):
            load_bundle(Settings(data=tmp_path, policies=own))
        (place / "schema.cedarschema").unlink()


def test_policies_that_do_not_load_are_refused_and_the_directory_is_let_go_of(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^`policies`: .* is not a directory$"):
        opened(data, policies=tmp_path / "none")
    own = own_policies(tmp_path)
    (own / "guardrails" / "observers.cedar").unlink()
    with pytest.raises(PolicyError, match=r"^:0: `guardrails/observers`: is required and missing$"):
        opened(data, policies=own)
    opened(data).database.close()


def test_a_directory_without_keys_is_refused_and_let_go_of(data: Path, tmp_path: Path) -> None:
    Database.create(tmp_path / "bare").close()
    with pytest.raises(KeyFileError):
        opened(tmp_path / "bare")
    Database.open(tmp_path / "bare").close()


def test_a_store_that_cannot_be_read_is_let_go_of(data: Path) -> None:
    services = opened(data)
    set_up_org(services, name="one", email="owner@sample.example")
    services.database.exclusive(lambda connection: connection.execute("UPDATE orgs SET settings = '{\"unknown\":1}'")).result()
    services.database.close()
    with pytest.raises(TypeError):
        opened(data)
    Database.open(data).close()


def test_a_directory_that_is_open_is_refused_to_a_second(data: Path) -> None:
    services = opened(data)
    with pytest.raises(StoreRefused):
        opened(data)
    services.database.close()


def test_the_clock_is_aware_and_in_utc() -> None:
    assert str(clock().tzinfo) == "UTC"


def test_every_operation_has_a_name_and_a_route_of_its_own_and_says_what_it_does() -> None:
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)
    assert len({(operation.method, operation.path) for operation in OPERATIONS}) == len(OPERATIONS)
    for operation in OPERATIONS:
        assert operation.summary.endswith("."), operation.name
        assert bool(operation.actions) != (operation.public is not None), operation.name


def test_every_action_that_an_operation_asks_for_is_in_the_schema(tmp_path: Path) -> None:
    known = load_bundle(Settings(data=tmp_path)).actions
    assert {action for operation in OPERATIONS for action in operation.actions} - known == set()
