"""Whom an access token stands for: a member or an agent of its own organisation, by what is stored of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from gateway.authn.access_token import Terms
from gateway.authn.authenticator import Authenticator
from gateway.authn.issuer import Issuer, Names
from gateway.authn.issuer_keys import IssuerKeys
from gateway.authn.signer import Signer
from gateway.errors import InvalidToken
from tests.authn.builders import NOW, ORG, People, a_human, an_agent, an_org
from tests.authn.issuing import claims, key_set, published, signed
from tests.authn.test_oidc_tokens import SENTENCE, TERMS

OTHER = str(UUID(int=50))
PERSON = a_human(2, role="member")
OWNER = a_human(5, role="owner")
STRANGER = a_human(6, org_id=OTHER, email="stranger@sample.example")
AGENT = an_agent(3)
OTHERS_AGENT = an_agent(7, org_id=OTHER)


@pytest.fixture
def people() -> People:
    made = People(orgs={ORG: an_org(), OTHER: an_org(OTHER)})
    made.humans |= {human.id: human for human in (PERSON, OWNER, STRANGER)}
    made.agents |= {agent.id: agent for agent in (AGENT, OTHERS_AGENT)}
    return made


Make = Callable[..., Authenticator]


@pytest.fixture
def make(tmp_path: Path, people: People) -> Make:
    """Authentication with an issuer whose claims have these names."""
    keys = IssuerKeys(lambda: key_set(published("one")))
    keys.load(NOW)
    signer = Signer.create(tmp_path)

    def made(terms: Terms = TERMS, **names: str | None) -> Authenticator:
        asked = Names(**{"email": "email", "org": "org", "role": None, "agent": "agent", **names})  # type: ignore[arg-type]
        return Authenticator(signer, people, rate_limit=0, issuer=Issuer(terms, asked, keys))

    return made


def token(**changed: object) -> str:
    return signed(claims(**{"org": ORG, **changed}))


def refused(authenticator: Authenticator, bearer: str) -> None:
    with pytest.raises(InvalidToken) as error:
        authenticator.authenticate(bearer, NOW)
    assert (error.value.detail, error.value.reason) == (SENTENCE, SENTENCE)


def test_a_member_is_who_has_the_verified_address(make: Make) -> None:
    for spelling in (PERSON.email, PERSON.email.upper(), f" {PERSON.email} "):
        assert make().authenticate(token(email=spelling), NOW).uid.id == PERSON.id


@pytest.mark.parametrize(
    "changed",
    [
        {"email": "nobody@sample.example"},
        {"email": None},
        {"email": [PERSON.email]},
        {"email": "e" * 1000 + "@sample.example"},
        {"email_verified": None},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": 1},
        {"sub": PERSON.id, "email": None},
        {"cnf": {"jkt": "thumbprint"}},
        {"act": {"sub": "an agent"}},
    ],
    ids=str,
)
def test_who_is_no_member_by_a_verified_address_is_refused_like_everybody(make: Make, changed: dict[str, object]) -> None:
    assert make().authenticate(token(), NOW).id == PERSON.id
    refused(make(), token(**changed))


def test_an_address_may_be_under_another_name_and_so_is_its_verification(make: Make) -> None:
    made = make(email="https://issuer.example/mail")
    good = {"https://issuer.example/mail": OWNER.email, "https://issuer.example/mail_verified": True}
    assert made.authenticate(token(**good), NOW).id == OWNER.id
    refused(made, token(**{**good, "https://issuer.example/mail_verified": False}))


# -- organisations


@pytest.mark.parametrize("org", [OTHER, str(UUID(int=51)), "", None, [ORG], 1], ids=str)
def test_a_member_is_of_the_organisation_that_the_token_names(make: Make, org: object) -> None:
    refused(make(), token(org=org))


def test_a_member_of_the_other_organisation_is_theirs(make: Make) -> None:
    assert make().authenticate(token(org=OTHER, email=STRANGER.email), NOW).org_id == OTHER
    refused(make(), token(email=STRANGER.email))


def test_without_its_claim_a_token_is_for_the_only_organisation_there_is(make: Make, people: People) -> None:
    refused(make(org=None), token())
    del people.orgs[OTHER]
    assert make(org=None).authenticate(token(org=None), NOW).org_id == ORG
    refused(make(org=None), token(email=STRANGER.email))
    people.orgs.clear()
    refused(make(org=None), token())


# -- roles


@pytest.mark.parametrize("said", ["member", ["member"], ["owner", "member"]], ids=str)
def test_a_role_that_the_organisation_gave_is_let_pass(make: Make, said: object) -> None:
    assert make(role="role").authenticate(token(role=said), NOW).id == PERSON.id


@pytest.mark.parametrize("said", ["owner", ["owner", "admin"], "Member", [], None, {"member": 1}, [["member"]]], ids=str)
def test_a_role_that_it_did_not_give_is_refused(make: Make, said: object) -> None:
    refused(make(role="role"), token(role=said))


def test_an_owner_whom_the_issuer_calls_less_is_refused_and_not_made_less(make: Make) -> None:
    refused(make(role="role"), token(email=OWNER.email, role="member"))


def test_a_role_in_a_claim_that_is_not_looked_at_is_nothing(make: Make, people: People) -> None:
    assert make().authenticate(token(role="owner"), NOW).id == PERSON.id
    assert people.humans[PERSON.id].role == "member"


# -- agents


def test_an_agent_is_who_has_the_id(make: Make) -> None:
    caller = make().authenticate(token(agent=AGENT.id, email=None), NOW)
    assert (caller.type, caller.id, caller.org_id, caller.credential_id) == ("Agent", AGENT.id, ORG, f"issuer/{AGENT.id}")


def test_an_agent_that_acts_for_a_member_is_the_agent(make: Make) -> None:
    assert make().authenticate(token(agent=AGENT.id, act={"sub": "agent"}), NOW).type == "Agent"


@pytest.mark.parametrize("said", [OTHERS_AGENT.id, PERSON.id, str(UUID(int=9)), "", None, [AGENT.id], 3], ids=str)
def test_a_token_that_names_no_agent_of_its_organisation_is_not_the_members_either(make: Make, said: object) -> None:
    whole = claims(org=ORG) | {"agent": said}
    refused(make(), signed(whole))


def test_without_its_claim_no_token_is_an_agents(make: Make) -> None:
    assert make(agent=None).authenticate(token(agent=AGENT.id), NOW).type == "Human"
    refused(make(agent=None), token(agent=AGENT.id, email=None))


def test_an_agents_token_that_is_bound_to_a_key_is_refused(make: Make) -> None:
    refused(make(), token(agent=AGENT.id, cnf={"x5t#S256": "x"}))


# -- what ends it, at once

Change = Callable[[People], None]


def member_removed(people: People) -> None:
    del people.humans[PERSON.id]


def role_changed(people: People) -> None:
    people.humans[PERSON.id] = replace(PERSON, role="admin", generation=2)


def moved(people: People) -> None:
    people.humans[PERSON.id] = replace(PERSON, org_id=OTHER)


def replaced(people: People) -> None:
    """Another person with the address of one who was removed."""
    del people.humans[PERSON.id]
    people.humans["new"] = replace(PERSON, id="new")


@pytest.mark.parametrize("change", [member_removed, role_changed, moved, replaced])
def test_what_ends_the_tokens_of_a_member_ends_one_that_was_used(make: Make, people: People, change: Change) -> None:
    made, bearer = make(), token()
    made.authenticate(bearer, NOW)
    change(people)
    refused(made, bearer)


def agent_deleted(people: People) -> None:
    del people.agents[AGENT.id]


def agent_inactive(people: People) -> None:
    people.agents[AGENT.id] = replace(AGENT, is_active=False)


def keys_rotated(people: People) -> None:
    people.agents[AGENT.id] = replace(AGENT, generation=2)


@pytest.mark.parametrize("change", [agent_deleted, agent_inactive, keys_rotated])
def test_what_ends_the_tokens_of_an_agent_ends_one_that_was_used(make: Make, people: People, change: Change) -> None:
    made, bearer = make(), token(agent=AGENT.id)
    made.authenticate(bearer, NOW)
    change(people)
    refused(made, bearer)


def test_a_token_that_comes_after_a_change_is_a_new_sign_in(make: Make, people: People) -> None:
    made = make()
    made.authenticate(token(), NOW)
    role_changed(people)
    assert made.authenticate(token(jti="another"), NOW).id == PERSON.id


def test_a_session_that_was_ended_stays_so(make: Make, people: People) -> None:
    made, bearer = make(), token()
    ended = made.authenticate(bearer, NOW).token_id
    assert ended is not None
    people.revoked_tokens[ended] = NOW
    refused(made, bearer)
    assert made.authenticate(token(jti="another"), NOW).id == PERSON.id


def test_only_so_many_tokens_are_remembered(make: Make, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.authn.issuer.REMEMBERED", 2)
    made, bearers = make(), [token(jti=str(number)) for number in range(3)]
    for bearer in bearers:
        made.authenticate(bearer, NOW)
    role_changed(people)
    refused(made, bearers[2])
    refused(made, bearers[1])
    assert made.authenticate(bearers[0], NOW).id == PERSON.id
