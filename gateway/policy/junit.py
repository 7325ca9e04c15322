"""JUnit: results of cases as the XML that build servers read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gateway.policy.cases import CaseResult

#: What XML 1.0 cannot hold, written out or escaped.
IMPOSSIBLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(results: Sequence[CaseResult]) -> str:
    """Returns one `testsuite` a file and one `testcase` a case; a control is a property of its case. No times: none repeat."""
    root = Element("testsuites", {"name": "policies", **_counts(results)})
    for file, found in groupby(results, key=lambda result: result.case.file):
        of_file = list(found)
        suite = SubElement(root, "testsuite", {"name": _text(file), **_counts(of_file)})
        for result in of_file:
            case = SubElement(suite, "testcase", classname=_text(file.removesuffix(".json")), name=_text(result.case.name))
            if result.case.control:
                properties = SubElement(case, "properties")
                SubElement(properties, "property", name="control", value=_text(result.case.control))
            if not result.passed:
                message = "; ".join(result.failures)
                SubElement(case, "failure", message=_text(message)).text = _text("\n".join(result.failures))
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _counts(results: Sequence[CaseResult]) -> dict[str, str]:
    failed = sum(not result.passed for result in results)
    return {"tests": str(len(results)), "failures": str(failed), "errors": "0"}


def _text(text: str) -> str:
    return IMPOSSIBLE.sub("?", text)
