"""`peergate tour`: five requests, and the answers that it says they have."""

from __future__ import annotations

from tests.cli.conftest import Command

SHOWN = ["allowed", "denied, with the reason", "predicted, and still not automatic", "corrected", "shared"]


def test_the_tour_shows_a_yes_a_no_a_prediction_a_correction_and_what_is_shared(command: Command) -> None:
    stops = command("tour", "--json").json["stops"]
    assert [(stop["shows"].partition(":")[0], stop["status"]) for stop in stops] == list(
        zip(SHOWN, (200, 403, 200, 200, 200), strict=True)
    )
    read, denied, predicted, corrected, shared = (stop["answer"] for stop in stops)
    assert "customer-17@example.com" in read["context"]
    assert denied["detail"] == "This agent is not on the observer list of this peer."
    assert (predicted["likelihood"] > 0.8, predicted["suggest_auto"]) == (True, False)
    assert corrected["edited_by_human"] is True
    assert [row["text"] for row in shared["items"]] == ["The launch of alpha moved to May."]


def test_for_people_every_request_and_answer_is_printed_and_no_key(command: Command) -> None:
    walked = command("tour")
    assert (walked.code, walked.err) == (0, "")
    assert [line for line in walked.out.splitlines() if line.startswith("answer ")] == [
        "answer 200",
        "answer 403",
        "answer 200",
        "answer 200",
        "answer 200",
    ]
    assert "1ck_" not in walked.out
    assert "ocv_" not in walked.out
