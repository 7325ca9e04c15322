"""Questions from outside: how large they are."""

from __future__ import annotations

from gateway.model.asked import Asked, Named, Sizes

RESOURCE = Named("document", "welcome")


def question(subject: Named, **members: dict[str, object]) -> Asked:
    return Asked(subject, "read", RESOURCE, **members)


def test_a_size_counts_names_and_everything_that_was_sent() -> None:
    bare = Sizes().of(question(Named("user", "ada")))
    assert bare == len("useradareaddocumentwelcome")
    sent: dict[str, object] = {"note": "four", "many": ["one", {"deep": "down"}], "number": 10**300, "nothing": None}
    size = len("notefourmanyonedeepdownnumbernothing") + 2 + 1 + 1
    assert Sizes().of(question(Named("user", "ada"), context=sent)) == bare + size
    assert Sizes().of(question(Named("user", "ada"), action_properties=sent)) == bare + size
    assert Sizes().of(question(Named("user", "ada", sent))) == bare + size


def test_a_question_that_is_gone_leaves_its_size_to_no_other() -> None:
    sizes, bare = Sizes(), Sizes().of(question(Named("user", "")))
    assert [sizes.of(question(Named("user", "", {"n": "n" * n}))) for n in range(50)] == [bare + 1 + n for n in range(50)]
