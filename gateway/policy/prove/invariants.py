"""What holds of every request over every store, whatever is in it: each as forbids that no allow ever meets."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.policy.bundle import Bundle

EVERYTHING = '@id("everything") permit (principal, action, resource);'


@dataclass(frozen=True, slots=True)
class Invariant:
    """A claim about every allow: its name, a sentence for people, and forbids of which none is satisfied or errs then."""

    name: str
    sentence: str
    text: str

    def bound(self, bundle: Bundle) -> Bundle:
        """Returns the most that the claim lets a bundle of the same schema allow; raises `PolicyError`."""
        return Bundle.from_text(bundle.schema_text, {"invariant.cedar": EVERYTHING + self.text}, house_rules=False)


INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "observers",
        "An agent that is not listed as an observer has nothing to do with a peer.",
        "forbid (principal is Agent, action, resource is Peer) unless { principal in resource.observers };",
    ),
    Invariant(
        "organisation",
        "Nothing is done across the boundary of an organisation.",
        "forbid (principal, action, resource) unless { principal is Operator || resource in principal.org };",
    ),
    Invariant(
        "sensitive",
        "No policy makes a sensitive action automatic.",
        'forbid (principal, action == Action::"suggest_auto", resource) when { resource.sensitive };',
    ),
    Invariant(
        "human_only",
        "Only a human does what is for humans only, changing observers among it.",
        """
        forbid (principal, action in Action::"human_only", resource) unless { principal is Human };
        forbid (principal, action in [Action::"peer.create", Action::"peer.link", Action::"peer.set_observers"], resource)
          unless { principal is Human };
        """,
    ),
    Invariant(
        "granted_rows",
        "A connection gets no untagged row, none of another agent, and none of a project or tier that its grants do not name.",
        """
        forbid (principal is Connection, action, resource is Memory) unless {
          resource has project && principal.projects.contains(resource.project) &&
          principal.tiers.contains(resource.classification) && resource.agent == principal.agent
        };
        """,
    ),
    Invariant(
        "own_actions",
        "A platform, a connection and a bridge do nothing but their own actions, and nobody does those of a platform or bridge.",
        """
        forbid (principal is Platform, action, resource)
          unless { action in [Action::"platform", Action::"connection.disconnect"] };
        forbid (principal is Connection, action, resource)
          unless { action in [Action::"memory_rows", Action::"remote_connection.read", Action::"session.end"] };
        forbid (principal is Bridge, action, resource) unless { action in Action::"bridge" };
        forbid (principal, action in Action::"platform", resource) unless { principal is Platform };
        forbid (principal, action in Action::"bridge", resource) unless { principal is Bridge };
        """,
    ),
    Invariant(
        "roles",
        "A human who is no owner or admin gets no content of another person's peer, and no memory.",
        """
        forbid (principal is Human, action in Action::"content", resource) unless {
          principal in [Role::"owner", Role::"admin"] || (resource has person && resource.person == principal)
        };
        forbid (principal is Human, action, resource is Memory) unless { principal in [Role::"owner", Role::"admin"] };
        """,
    ),
)
