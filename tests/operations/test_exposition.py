"""The text format, read back by the parser of Prometheus."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from gateway.model.histogram import Histogram
from gateway.operations.exposition import Family, Times, one, text


def read(page: str) -> dict[str, tuple[str, str, list[tuple[str, dict[str, str], float]]]]:
    return {
        family.name: (family.type, family.documentation, [(s.name, dict(s.labels), s.value) for s in family.samples])
        for family in text_string_to_metric_families(page)
    }


def test_a_counter_with_labels_and_a_gauge_without() -> None:
    page = text(
        [
            Family("a_total", "counter", "What a is.", [({"x": "1", "y": 'q"\\\n'}, 3), ({"x": "2", "y": ""}, 0)]),
            one("b", "gauge", "What b is.", 0.25),
        ]
    )
    assert read(page) == {
        "a": (
            "counter",
            "What a is.",
            [("a_total", {"x": "1", "y": 'q"\\\n'}, 3.0), ("a_total", {"x": "2", "y": ""}, 0.0)],
        ),
        "b": ("gauge", "What b is.", [("b", {}, 0.25)]),
    }


def test_a_histogram_adds_up_from_bucket_to_bucket() -> None:
    taken = Histogram((0.1, 1.0))
    for seconds in (0.05, 0.5, 0.5, 7.0):
        taken.add(seconds)
    assert read(text([Times("t_seconds", "How long.", taken)])) == {
        "t_seconds": (
            "histogram",
            "How long.",
            [
                ("t_seconds_bucket", {"le": "0.1"}, 1.0),
                ("t_seconds_bucket", {"le": "1"}, 3.0),
                ("t_seconds_bucket", {"le": "+Inf"}, 4.0),
                ("t_seconds_sum", {}, 8.05),
                ("t_seconds_count", {}, 4.0),
            ],
        )
    }


def test_a_family_without_samples_is_named_all_the_same() -> None:
    assert text([Family("a_total", "counter", "What a is.", ())]) == "# HELP a_total What a is.\n# TYPE a_total counter\n"
