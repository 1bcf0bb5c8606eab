"""The library audits itself: every mechanism is in the catalogue, a small part runs here, and a broken one is found."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import pytest

from discreet import adaptive, mechanisms
from discreet.lab.audit.output_features import outputs_of
from discreet.lab.audit.self_audit import self_audit
from discreet.lab.audit.self_audit.audit_run import SelfAudit
from discreet.lab.audit.self_audit.subjects import (
    BlackBox,
    ListedSubject,
    catalogue,
    of_adaptive,
    of_mechanisms,
    of_sessions,
    of_statistics,
)
from discreet.privacy.events import PureDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

QUICK = ("Laplace", "Exponential", "RandomizedResponse", "Quantile, 1/2", "StableMode", "OptimalPartitionSelection")
# Verified in tests/adaptive on worlds of their own; each runs one of those that are listed.
ELSEWHERE = {
    "Aggregator", "BlockCentre", "BlockMode", "BlockNumber", "BoundedLocalSensitivity", "BoundedSmoothSensitivity",
    "Proposed", "ReleaseIfStable", "SubsampleAndAggregate", "VectorSmoothSensitivityMechanism",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Boastful:
    """A mechanism that claims half of what it spends."""

    right: mechanisms.Laplace

    @property
    def event(self) -> PureDP:
        return PureDP(Fraction(self.right.sensitivity) / self.right.scale / 2)

    @property
    def relation(self):
        return self.right.relation

    def distribution(self, data: int) -> Outcomes:
        return self.right.distribution(data)


@pytest.fixture(scope="module")
def small() -> SelfAudit:
    listed = [subject for subject in (*of_mechanisms(), *of_adaptive()) if subject.name in QUICK]
    count = dataclasses.replace(next(iter(of_statistics())), runs=400)
    return self_audit("small", subjects=[*listed, count])


@pytest.mark.parametrize(("part", "found"), [(mechanisms, of_mechanisms), (adaptive, of_adaptive)])
def test_every_mechanism_is_in_the_catalogue(part, found) -> None:
    kinds = {type(subject.mechanism).__name__ for subject in found()}
    public = {
        name
        for name in part.__all__
        if isinstance(getattr(part, name), type) and hasattr(getattr(part, name), "release")
    }
    assert public - kinds - ELSEWHERE == set()


def test_a_sound_library_is_not_called_broken(small: SelfAudit) -> None:
    assert not small.broken
    assert {row.how for row in small.rows} == {"exact", "measured"}
    laplace = next(row for row in small.rows if row.name == "Laplace")
    assert laplace.claimed == pytest.approx(2 / 3)
    assert laplace.margin == pytest.approx(0, abs=1e-12)


def test_a_broken_mechanism_is_named_with_its_pair() -> None:
    first = next(subject for subject in of_mechanisms() if subject.name == "Laplace")
    boast = dataclasses.replace(first, name="boast", mechanism=Boastful(first.mechanism))
    found = self_audit(subjects=[boast])
    assert [row.name for row in found.broken] == ["boast"]
    assert "1 claims BROKEN (boast)" in found.headline
    assert found.broken[0].shown == pytest.approx(2 * found.broken[0].claimed)
    assert 'class="bad"' in found.to_html()


def test_a_black_box_that_tells_its_data_is_found() -> None:
    exact = BlackBox(
        part="mine",
        name="exact",
        run=len,
        claim=PureDP(1),
        relation=Relation.ADD_REMOVE,
        pairs=(((), (1,)),),
        runs=100,
    )
    assert self_audit(subjects=[exact]).broken


def test_the_report_is_text_json_and_a_page_that_loads_nothing(small: SelfAudit) -> None:
    text, page, document = str(small), small.to_html(), json.loads(small.to_json())
    assert text.startswith("no claim is broken; ")
    assert len(document["rows"]) == len(small.rows)
    assert document["rows"][0]["margin"] == pytest.approx(0, abs=1e-12)
    for row in small.rows:
        assert row.name in text
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_sessions_are_audited_from_their_released_numbers() -> None:
    subject = next(iter(of_sessions()))
    (seen,) = outputs_of([subject.run(("a", "b", "b"))])
    assert [dict(row)["side"] for row in seen] == ["a", "b"]
    assert all(isinstance(dict(row)["n"], (int, float, Fraction)) for row in seen)


def test_the_full_size_measures_what_is_listed_as_well() -> None:
    first = next(subject for subject in of_mechanisms() if subject.name == "Laplace")
    assert [row.how for row in self_audit("full", subjects=[first]).rows] == ["exact", "measured"]


@pytest.mark.soak
def test_the_whole_library_at_the_small_size() -> None:
    found = self_audit("small")
    print(found)
    assert not found.broken
    assert len(found.rows) >= 80
    assert all(isinstance(subject, (ListedSubject, BlackBox)) for subject in catalogue())
