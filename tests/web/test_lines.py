"""The process's own log: a line a request, and what becomes of lines that nobody takes."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from gateway import limits
from gateway.config import Settings
from gateway.operations.traffic import Traffic
from gateway.web.app import Application
from gateway.web.exchange import Exchange
from gateway.web.lines import FORMS, Handler, Lines, record_as_json, reporting, to_descriptor
from tests.builders import Gateway, done

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def told_by(gateway: Gateway, form: str) -> list[str]:
    app, kept = gateway.http.app, []
    assert isinstance(app, Application)
    app.told = lambda exchange, status, seconds: kept.append(FORMS[form].request(exchange, status, seconds))
    return kept


@pytest.fixture
def quiet(gateway: Gateway) -> Iterator[Gateway]:
    """Whatever a test has told is not told after it."""
    yield gateway
    app = gateway.http.app
    assert isinstance(app, Application)
    app.told = None


@pytest.mark.parametrize("audit", ["durable", "relaxed"])
def test_a_line_names_the_request_its_operation_its_status_and_its_decisions(tmp_path: Path, audit: str) -> None:
    gateway = Gateway(tmp_path / "data", audit=audit)
    peer = gateway.peer(observers=[])
    lines = told_by(gateway, "json")
    denied = done(gateway.agent().request("GET", f"/v1/peers/{peer['id']}", headers={"X-Request-Id": "mine"}), 403)
    done(gateway.http.get("/v1/nothing"), 404)
    gateway.close()
    created, read, missed = (json.loads(line) for line in lines)
    assert TIME.fullmatch(read.pop("time"))
    assert read.pop("ms") > 0
    assert read == {
        "level": "info",
        "request_id": "mine",
        "operation": "peer.read",
        "status": 403,
        "decisions": [denied["decision_id"]],
    }
    assert (created["operation"], created["status"], len(created["decisions"])) == ("agent.create", 201, 1)
    assert (missed["operation"], missed["status"], missed["decisions"]) == ("none", 404, [])


def test_on_a_terminal_it_is_for_people(quiet: Gateway) -> None:
    lines = told_by(quiet, "text")
    done(quiet.owner.request("GET", "/v1/peers", headers={"X-Request-Id": "mine"}), 200)
    done(quiet.http.get("/health/live"), 200)
    listed, live = (line.partition(" ")[2] for line in lines)
    assert re.fullmatch(r"info 200 peer\.list [\d.]+ ms request=mine decisions=[0-9a-f-]{36}", listed)
    assert re.fullmatch(r"info 200 health\.live [\d.]+ ms request=[0-9a-f-]{36}", live)


def test_what_waits_is_written_before_the_end() -> None:
    read, write = os.pipe()
    lines = Lines(to_descriptor(write))
    for number in range(100):
        lines.put(f"line {number}")
    lines.close()
    os.close(write)
    with os.fdopen(read) as written:
        assert written.read() == "".join(f"line {number}\n" for number in range(100))


def test_lines_that_nobody_takes_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_LINES", 3)
    entered, release = threading.Event(), threading.Event()

    def stuck(_: bytes) -> None:
        entered.set()
        release.wait()

    lines = Lines(stuck)
    lines.put("taken")
    entered.wait()
    for number in range(5):
        lines.put(str(number))
    assert (lines.dropped, len(lines._waiting)) == (2, 3)
    release.set()
    lines.close()


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    lines = Lines(to_descriptor(write))
    lines.put("lost")
    lines.close()
    os.close(write)
    assert lines.dropped == 1


def test_what_went_wrong_is_a_line_without_what_the_exception_says() -> None:
    kept: list[bytes] = []
    lines = Lines(kept.append)
    logger = logging.Logger("another.package")
    logger.addHandler(Handler(lines, record_as_json))
    try:
        raise ValueError("what a person wrote")
    except ValueError:
        logger.exception("it broke")
    logger.info("not worth a line")
    lines.close()
    [line] = b"".join(kept).decode().splitlines()
    said = json.loads(line)
    assert (said["level"], said["logger"]) == ("error", "another.package")
    assert said["message"].startswith("it broke ValueError\n")
    assert "in test_what_went_wrong" in said["message"]
    assert "person wrote" not in line.replace('raise ValueError(\\"what a person wrote\\")', "")


@pytest.mark.parametrize(("log", "begins"), [("json", '{"time":"20'), ("text", "20"), (None, '{"time":"20')])
def test_the_setting_chooses_the_form(
    log: Literal["json", "text"] | None, begins: str, capfd: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before = list(root.handlers)
    with reporting(Settings(data=Path(), log=log), Traffic()) as told:
        assert told is not None
        told(Exchange("mine", 0.0, 0.0), 200, 0.001)
        root.warning("it broke")
    assert root.handlers == before
    request, report = capfd.readouterr().err.splitlines()
    assert (request[: len(begins)], report[: len(begins)]) == (begins, begins)
    assert ("mine" in request, "it broke" in report) == (True, True)


def test_without_lines_of_requests_what_went_wrong_is_still_told(capfd: pytest.CaptureFixture[str]) -> None:
    traffic = Traffic()
    with reporting(Settings(data=Path(), log="off"), traffic) as told:
        assert (told, traffic.lines_dropped()) == (None, 0)
        logging.getLogger().warning("it broke")
    [report] = capfd.readouterr().err.splitlines()
    assert "it broke" in report
