"""Platform applications of an organisation, and the templates they provision agents from."""

from __future__ import annotations

import re

from gateway import limits
from gateway.authn.keys import PLATFORM_KEY, mint_key
from gateway.errors import Invalid
from gateway.model.ids import new_id
from gateway.model.records import Credential, PlatformApp, PlatformTemplate
from gateway.model.rules import ApprovalRules, parse_rules
from gateway.operations.call import Call
from gateway.operations.fields import Fields, is_id, stamp
from gateway.operations.guardrails import confirm_rules
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.wire import platform as wire
from gateway.operations.wire.platform import AGENTS_PER_TEMPLATE, SLUG_CHARACTERS, TEMPLATE_AGENT
from gateway.store import platforms
from gateway.store.entities import Missing

_SLUG = re.compile(wire.SLUG)


async def list_apps(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "platform_app.list", call.org)
    apps = [app for app in list(call.state.apps.values()) if app.org_id == grant.target.id]
    return Reply({"apps": [_app(app) for app in sorted(apps, key=lambda app: (app.created_at, app.id))]})


async def create_app(call: Call) -> Reply:
    name = call.body.text("name", longest=limits.NAME_CHARACTERS)
    slug = call.body.text("slug", longest=SLUG_CHARACTERS)
    if not _SLUG.fullmatch(slug):
        raise call.body.wrong("slug", "a-z, 0-9 and single hyphens between them")
    grant = call.access.authorize(call.session, "platform_app.create", call.org)
    app = PlatformApp(new_id(), grant.target.id, name, slug, grant.caller.id, call.now)
    secret, key = _key(call, app)
    await call.write_alone(platforms.add_app, grant, app, key)
    return Reply({"app": _app(app), "api_key": secret}, 201)


async def rotate_key(call: Call) -> Reply:
    """Replace the key; the one before it has ended when this answers."""
    grant = call.access.authorize(call.session, "platform_app.rotate_key", _target(call, call.path["id"]))
    secret, key = _key(call, grant.target)
    await call.write_alone(platforms.rotate_key, grant, key)
    return Reply({"app": _app(grant.target), "api_key": secret})


async def delete_app(call: Call) -> Reply:
    """Remove an application. Its key and its connections have ended when this answers; people and agents stay."""
    grant = call.access.authorize(call.session, "platform_app.delete", _target(call, call.path["id"]))
    await call.write_alone(platforms.remove_app, grant)
    return NO_CONTENT


async def list_templates(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "platform_template.list", call.org)
    templates = [template for template in list(call.state.templates.values()) if template.org_id == grant.target.id]
    ordered = sorted(templates, key=lambda template: (template.created_at, template.id))
    return Reply({"templates": [_template(template) for template in ordered]})


async def create_template(call: Call) -> Reply:
    name = call.body.text("name", longest=limits.NAME_CHARACTERS)
    written = [_agent(entry) for entry in call.body.objects("agents", most=AGENTS_PER_TEMPLATE)]
    agents = tuple({"name": name, **_policy(rules)} for name, rules in written)
    if not agents:
        raise Invalid(f"`agents` must name 1 to {AGENTS_PER_TEMPLATE} agents", field="agents")
    grant = call.access.authorize(call.session, "platform_template.create", call.org)
    template = PlatformTemplate(new_id(), grant.target.id, name, agents, grant.caller.id, call.now)
    policies = [rules for _, rules in written if rules.source]
    if policies:
        await confirm_rules(call)
    await call.write(platforms.add_template, grant, template, policies)
    return Reply({"template": _template(template)}, 201)


def _target(call: Call, app_id: str) -> PlatformApp | Missing:
    """An application of the caller's organisation by id."""
    found = call.state.apps.get(app_id)
    if found is None or found.org_id != call.session.caller.org_id:
        return Missing("Platform", app_id if is_id(app_id) else "-")
    return found


def _key(call: Call, app: PlatformApp) -> tuple[str, Credential]:
    """A fresh key of an application: its secret and what is kept."""
    secret, hashed = mint_key(PLATFORM_KEY)
    return secret, Credential(new_id(), app.org_id, "Platform", app.id, "platform key", hashed, call.now, None)


def _agent(entry: Fields) -> tuple[str, ApprovalRules]:
    entry.refuse_others(TEMPLATE_AGENT)
    name = entry.text("name", longest=limits.NAME_CHARACTERS)
    return name, parse_rules(entry.members.get("action_approval_policy"), field=entry.name("action_approval_policy"))


def _policy(rules: ApprovalRules) -> dict[str, object]:
    return {"action_approval_policy": rules.source} if rules.source else {}


def _app(app: PlatformApp) -> dict[str, object]:
    return {"id": app.id, "name": app.name, "slug": app.slug, "created_by": app.created_by, "created_at": stamp(app.created_at)}


def _template(template: PlatformTemplate) -> dict[str, object]:
    return {
        "id": template.id,
        "name": template.name,
        "agents": list(template.agents),
        "created_by": template.created_by,
        "created_at": stamp(template.created_at),
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "platform_app.list",
        "GET",
        "/v1/org/platform-apps",
        "List the platform applications of the organisation.",
        list_apps,
        actions=("platform_app.list",),
        strict=True,
        answers={200: wire.APPS},
    ),
    Operation(
        "platform_app.create",
        "POST",
        "/v1/org/platform-apps",
        "Register a platform application; its key is shown once.",
        create_app,
        actions=("platform_app.create",),
        fields=wire.NEW_APP,
        strict=True,
        answers={201: wire.APP_WITH_KEY},
    ),
    Operation(
        "platform_app.rotate_key",
        "POST",
        "/v1/org/platform-apps/{id}/rotate-key",
        "End the key of an application and make a new one, which is shown once.",
        rotate_key,
        actions=("platform_app.rotate_key",),
        strict=True,
        answers={200: wire.APP_WITH_KEY},
    ),
    Operation(
        "platform_app.delete",
        "DELETE",
        "/v1/org/platform-apps/{id}",
        "Remove an application with its key, and end its connections.",
        delete_app,
        actions=("platform_app.delete",),
        strict=True,
        answers={204: None},
    ),
    Operation(
        "platform_template.list",
        "GET",
        "/v1/org/platform-templates",
        "List the templates that bootstraps provision agents from.",
        list_templates,
        actions=("platform_template.list",),
        strict=True,
        answers={200: wire.TEMPLATES},
    ),
    Operation(
        "platform_template.create",
        "POST",
        "/v1/org/platform-templates",
        "Write a template: the agents a bootstrap provisions, and their policies.",
        create_template,
        actions=("platform_template.create",),
        fields=wire.NEW_TEMPLATE,
        strict=True,
        answers={201: wire.TEMPLATE},
        confirmed=True,
    ),
)
