"""A world for decisions in this process: an organisation in memory, with the shipped policies and nothing on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gateway.access import Access
from gateway.cli.bench.records import an_agent, an_observer, an_org, an_owner, a_peer
from gateway.model.caller import Caller
from gateway.model.grant import Session
from gateway.model.records import Human, Org, Peer
from gateway.model.rules import NO_RULES, ApprovalRules
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.store.entities import Compiler
from gateway.store.state import State
