"""An organisation's settings, as they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from gateway.errors import Invalid, Stale
from gateway.model.grant import Grant
from gateway.model.records import Org, OrgSettings
from gateway.store.canonical import canonical
from gateway.store.rows import Tx

UPDATE = "UPDATE orgs SET settings = $2 WHERE id = $1"
#: Sensitive actions an organisation may add; every request is compared with each of them.
MOST_SENSITIVE = 200


def settings_text(settings: OrgSettings) -> str:
    """Settings as the table holds them."""
    return canonical(asdict(settings))


def update_settings(
    tx: Tx, grant: Grant[Org], standing: OrgSettings, changes: Mapping[str, object], added: tuple[str, ...]
) -> OrgSettings:
    """Change settings; sensitive actions are only ever added. `standing` are those that the caller's proof was asked for.

    Raises:
        Invalid: more sensitive actions than an organisation may have.
        Stale: the settings are others by now, so that a proof may be needed.
    """
    org = tx.state.orgs[grant.target.id]
    if org.settings != standing:
        raise Stale
    sensitive = tuple(dict.fromkeys((*org.settings.sensitive_actions, *added)))
    if len(sensitive) > MOST_SENSITIVE:
        raise Invalid(
            f"`sensitive_actions` would hold {len(sensitive)} entries; at most {MOST_SENSITIVE} are allowed",
            field="sensitive_actions",
        )
    settings = replace(org.settings, sensitive_actions=sensitive, **changes)  # type: ignore[arg-type]  # checked by the reader of the body
    changed = replace(org, settings=settings)
    tx.run(UPDATE, org.id, settings_text(settings))
    tx.append(grant.audit("org.settings_updated", {"settings": sorted({*changes, *(("sensitive_actions",) if added else ())})}))
    tx.after_commit(lambda: tx.state.put_org(changed))
    return settings
