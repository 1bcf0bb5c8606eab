"""The page of a profile: one file, no script, nothing from outside, and names that cannot break out."""

from __future__ import annotations

from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from profile_worlds import people, session

from discreet.release import plan_profile
from discreet.release.profiling.estimates import Estimate
from discreet.release.profiling.profile_page import _gist
from discreet.release.profiling.profile_results import CellCount, ColumnProfile, Profile
from discreet.schema.columns import Kind

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def done() -> Profile:
    table = people(1500).append_column(HOSTILE, pa.array(["</style>&'\"", "plain", None] * 500))
    with session(table) as opened:
        return plan_profile(opened, epsilon=80, delta=1e-6).release()


class _Read(HTMLParser):
    VOID = frozenset({"meta", "rect", "line"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {value or "" for name, value in attrs if name == "id"}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_is_well_formed_and_needs_nothing_else(done: Profile, tmp_path: Path) -> None:
    text = done.write(tmp_path / "profile.html").read_text()
    read = _Read()
    read.feed(text)
    assert read.open == []
    assert read.tags.isdisjoint({"script", "iframe", "img", "link", "object", "form"})
    assert all(link.startswith("#") and link[1:] in read.names for link in read.links)
    assert "http" not in text.replace("http-equiv", "")


def test_a_column_of_known_quantiles_has_a_box_plot(done: Profile, tmp_path: Path) -> None:
    """Those beyond the outermost cuts, and of days, have none: a box would say more than is known."""
    text = done.write(tmp_path / "profile.html").read_text()
    known = [
        one
        for one in done.columns
        if one.quantiles and all(isinstance(q.value, Fraction) and not q.beyond for q in one.quantiles)
    ]
    assert known
    assert text.count(">box plot</th>") == len(known)


def test_names_and_values_cannot_break_out(done: Profile, tmp_path: Path) -> None:
    text = done.write(tmp_path / "profile.html").read_text()
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert "&lt;/style&gt;" in text


def test_every_column_is_in_the_index_and_has_a_card(done: Profile, tmp_path: Path) -> None:
    text = done.write(tmp_path / "profile.html").read_text()
    assert text.count("<section ") == text.count("<li><a href=") == len(done.columns)


def test_text_steers_no_terminal() -> None:
    table = pa.table({"evil\x1b[2J": ["a", "b"] * 50})
    with session(table) as opened:
        assert "\x1b" not in str(plan_profile(opened, epsilon=10, delta=1e-6).release())


def test_a_value_is_called_the_most_frequent_only_if_it_surely_is() -> None:
    def gist(counts: dict[str, int]) -> str:
        cells = tuple(CellCount(label=one, value=one, count=Estimate(many, 69)) for one, many in counts.items())
        none = Estimate(0, 69)
        return _gist(
            ColumnProfile(
                name="region", kind=Kind.TEXT, basis="", missing=none, present=none, cells=cells, ordered=False
            ),
            "",
        )

    assert gist({"hill": 1924, "coast": 1922, "plain": 1920}) == "3 values"
    assert gist({"hill": 1924, "coast": 1790}) == "2 values"
    assert gist({"hill": 1924, "coast": 1700}) == "most often hill"
