"""The sandbox: what came over the network is read within limits, in a process that may die of it."""

from __future__ import annotations

import pytest

from gateway.policy import organisation, sandbox
from gateway.policy.finding import PolicyError
from tests.world import shipped

FORBID = "forbid (principal, action, resource);"
#: The process of the sandbox, where something else is done in the place of reading.
INSTEAD = """
import resource
from gateway.policy import sandbox
from gateway.policy.finding import Finding, PolicyError
def read(**given):
    {}
sandbox.read = read
sandbox.main()
"""


def instead(monkeypatch: pytest.MonkeyPatch, code: str) -> str:
    """What is told when the process does something else."""
    monkeypatch.setattr(sandbox, "COMMAND", ("-c", INSTEAD.format(code)))
    return refused(FORBID)


def refused(text: str) -> str:
    with pytest.raises(PolicyError) as error:
        sandbox.check(shipped().schema_text, {"p": text})
    return str(error.value)


def test_it_finds_what_is_wrong_and_lets_pass_what_is_not() -> None:
    sandbox.check(shipped().schema_text, {"p": FORBID})
    with pytest.raises(PolicyError) as error:
        sandbox.check(shipped().schema_text, {"p": "\n" + FORBID + "permit"})
    assert [(found.file, found.line) for found in error.value.findings] == [("org/p", 2)]


def test_a_text_that_ends_the_process_that_reads_it_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "has died of it" in instead(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")


def test_a_text_that_takes_too_much_of_a_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "resource.setrlimit(resource.RLIMIT_CPU, (1, resource.getrlimit(resource.RLIMIT_CPU)[1]))\n    while True: pass"
    assert "it takes longer to read than it may" in instead(monkeypatch, code)


def test_a_text_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "has died of it" in instead(monkeypatch, "bytearray(2 * sandbox.MEMORY_BYTES)")


def test_the_process_has_limits_of_time_and_memory_and_leaves_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = "tuple(resource.getrlimit(getattr(resource, 'RLIMIT_' + name)) for name in ('CPU', 'AS', 'CORE'))"
    told = instead(monkeypatch, f"raise PolicyError([Finding('', 0, '', str({limits}))])")
    expected = ((sandbox.SECONDS, sandbox.SECONDS + 1), (sandbox.MEMORY_BYTES,) * 2, (0, 0))
    assert told == f":0: {expected}"


def test_a_process_that_gets_no_processor_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "WAIT_SECONDS", 1)
    assert "it was not read within 1 s" in instead(monkeypatch, "import time; time.sleep(600)")


def test_the_time_that_a_text_waits_for_a_processor_is_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = "import time; time.sleep(1); raise PolicyError([Finding('', 0, '', 'read')])"
    monkeypatch.setattr(sandbox, "SECONDS", 1)
    assert instead(monkeypatch, waited) == ":0: read"


def test_a_text_holds_so_many_policies_and_no_more() -> None:
    sandbox.check(shipped().schema_text, {"p": FORBID * organisation.MAX_POLICIES_A_TEXT})
    assert refused(FORBID * (organisation.MAX_POLICIES_A_TEXT + 1)) == "org/p:0: more than 200 policies"


def test_the_first_findings_are_told_of_a_text_with_more() -> None:
    wrong = "forbid (principal, action, resource) when { context.nothing };"
    with pytest.raises(PolicyError) as error:
        sandbox.check(shipped().schema_text, {"p": wrong * (sandbox.FINDINGS + 10)})
    assert len(error.value.findings) == sandbox.FINDINGS


def test_it_has_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEERGATE_KEY", "canary")
    code = "import os; raise PolicyError([Finding('', 0, '', str('PEERGATE_KEY' in os.environ))])"
    assert instead(monkeypatch, code) == ":0: False"
