"""Answers that the documents show are the gateway's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.builders import Gateway, done

README = Path(__file__).parents[2] / "README.md"


def test_the_denied_read_in_the_readme_is_the_answer(gateway: Gateway) -> None:
    [shown] = re.findall(r"^```json\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    peer = gateway.peer(observers=[gateway.agent()])
    answer = done(gateway.agent().get(f"/v1/peers/{peer['id']}/context"), 403)
    assert list(json.loads(shown).items()) == list({**answer, "decision_id": "5d8c…"}.items())
