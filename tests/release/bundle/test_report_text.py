"""The report is one file that carries all it needs, and no text of a plan or of a key can become a part of its page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser

import bundle_worlds as worlds
import pytest

from discreet.formatting import percent_up
from discreet.pages.kit import BUNDLE_STYLE, content_policy
from discreet.privacy import explain_epsilon
from discreet.query import ReleaseTable, Unit
from discreet.release.bundle.claims import claim_of
from discreet.release.plan import Invariant
from discreet.release.published import Published
from discreet.release.report import report_page

PAYLOADS = [
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "</svg><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "javascript:alert(1)",
    "<a href=javascript:alert(1)>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<!-- comment",
    "--><b>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;",
    "<math><mglyph><style></math><img src onerror=alert(1)>",
    "<template><script>alert(1)</script></template>",
    "\u202e<b>\u202c\x00<i>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "`${alert(1)}`{{7*7}}",
    "</table></main></body></html><p>",
    "<style>*{display:none}</style>",
]


class Structure(HTMLParser):
    """The tags of a page with the names of their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}", ()))

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", ()))

    def unknown_decl(self, data: str) -> None:
        self.tags.append(("declaration", ()))

    def handle_data(self, data: str) -> None:
        self.text += data


def speaking(published: Published, text: str) -> Published:
    """Put a text wherever a text can come from: the plan, the keys, the notes."""
    tables = tuple(
        replace(
            table,
            plan=replace(table.plan, title=text),
            raw=renamed(table.raw, text),
            tidy=None if table.tidy is None else renamed(table.tidy, text),
            threshold=text if table.threshold else "",
        )
        for table in published.tables
    )
    fact = Invariant(table="a", column=text, value=Fraction(1), where={text: text}, reason=text)
    plan = replace(published.plan, title=text, publisher=text, contact=text, invariants=(fact,))
    return replace(published, tables=tables, plan=plan)


def renamed(table: ReleaseTable, text: str) -> ReleaseTable:
    """Let every key and every note of a table be a text."""
    stored = json.loads(table.to_json())
    for column in stored["columns"]:
        if not column["measured"]:
            column["values"] = [f"{text}{row}" for row in range(stored["rows"])]
        elif column["no_interval"]:
            column["no_interval"] = text
    stored["notes"] = [text]
    return ReleaseTable.from_json(json.dumps(stored))


@pytest.fixture(scope="module")
def page(published) -> str:
    return report_page(published, claim_of(published))


@pytest.fixture(scope="module")
def plain(published) -> Structure:
    return Structure(report_page(speaking(published, "plain text"), claim_of(published)))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_changes_the_page(published, plain, payload):
    """With any text, the page has the tags and attributes that it has with a plain one, and shows the text."""
    found = Structure(report_page(speaking(published, payload), claim_of(published)))
    assert found.tags == plain.tags
    assert "".join(letter if letter.isprintable() else "�" for letter in payload) in found.text.replace("\xa0", " ")


def test_a_page_that_forgets_to_escape_is_noticed(published, plain, monkeypatch):
    monkeypatch.setattr("discreet.release.report.words", str)
    found = Structure(report_page(speaking(published, PAYLOADS[0]), claim_of(published)))
    assert found.tags != plain.tags


def test_the_page_refers_to_nothing_outside(page):
    assert not re.search(
        r"https?:|//[a-z]|\bsrc=|url\(|@import|<script|<link|javascript:", page.replace(BUNDLE_STYLE, "")
    )
    assert not re.search(r"https?:|url\(|@import", BUNDLE_STYLE)


def test_the_policy_of_the_page_names_its_style(page):
    assert f'content="{content_policy(BUNDLE_STYLE)}"' in page
    assert page.count("<style>") == 1
    assert " style=" not in page
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_all_tags_are_closed(page):
    """Browsers mend what is open; nobody should have to."""
    empty = {"meta", "line", "path", "circle", "polygon", "polyline"}
    opened: list[str] = []
    for tag, _ in Structure(page).tags:
        if tag.startswith("/"):
            if tag[1:] not in empty:
                assert opened.pop() == tag[1:]
        elif tag not in empty:
            opened.append(tag)
    assert opened == []


def test_every_section_is_there(page):
    for name in ("about", "tables", "budget", "hidden", "attacker", "limits", "verify"):
        assert f'<section id="{name}">' in page


def test_sections_without_matter_are_left_out(published):
    quiet = replace(
        published,
        tables=tuple(replace(table, tidy=None, threshold="") for table in published.tables[:1]),
        plan=replace(published.plan, invariants=()),
    )
    page = report_page(quiet, claim_of(quiet))
    assert '<section id="hidden">' not in page
    assert "Exact numbers" not in page
    assert "tidy" not in page.replace(BUNDLE_STYLE, "").lower()
    assert "<nav" not in page


def test_a_dummy_says_so_in_its_title_and_on_its_face(published):
    dummy = worlds.dummy(published)
    page = report_page(dummy, claim_of(dummy))
    assert "<title>DUMMY" in page
    assert 'class="dummy"' in page
    assert "released 20" not in page


def test_every_released_value_of_the_first_rows_is_on_the_page(page, published):
    text = Structure(page).text
    for table in published.tables:
        for row in table.raw:
            assert all(str(cell) in text for cell in row.values())


def test_long_tables_are_cut_and_say_so(published):
    table = next(table for table in published.tables if table.plan.name == "wards")
    stored = json.loads(table.raw.to_json())
    for column in stored["columns"]:
        for name in ("values", "low", "high"):
            if isinstance(column[name], list):
                column[name] = [f"ward {row}" for row in range(400)]
            elif column[name] is not None:
                column[name]["over"] = (column[name]["over"] * 200)[:400]
    stored["rows"] = 400
    raw = ReleaseTable.from_json(json.dumps(stored))
    long = replace(published, tables=(replace(table, raw=raw, tidy=raw.tidy),))
    page = report_page(long, claim_of(long))
    assert "The first 20 rows are shown" in page
    assert "All 400 rows are in" in page
    assert page.count("ward 19<") == 1
    assert "ward 20<" not in page


def test_text_and_missing_values_are_shown_without_bars(published):
    """A most frequent value is a text, and a group without values has none: neither can be drawn."""
    table = published.tables[3]
    stored = json.loads(table.raw.to_json())
    stored["columns"][1]["values"] = ["often", None]
    stored["columns"][1]["kind"] = "text"
    raw = ReleaseTable.from_json(json.dumps(stored))
    odd = replace(published, tables=(replace(table, raw=raw, tidy=None),))
    page = report_page(odd, claim_of(odd))
    assert ">often</td>" in page
    assert ">NULL</td>" in page


class TestTrue:
    """The page claims no more than is proven."""

    def text(self, published: Published) -> str:
        return " ".join(Structure(report_page(published, claim_of(published))).text.split())

    def test_it_says_why_the_pair_of_epsilon_and_delta_alone_allows_more(self, published):
        claim = claim_of(published)
        pair = explain_epsilon(claim.epsilon, delta=claim.delta)
        text = self.text(published)
        assert pair.success > claim.guess
        assert f"{percent_up(pair.success)} follows" in text
        assert f"at most {percent_up(claim.guess)}" in text
        assert "explain-epsilon" in text
        assert "its report, and discreet explain-epsilon --bundle, tell the bound of its own noise" in str(pair)
        of_noise = str(explain_epsilon(mu=1, delta=1e-6))
        assert "its report" not in of_noise, "that is of a noise already"
        assert "δ = 1e-06 alone, whatever the noise, a bound of 99.26 % follows" in of_noise

    def test_counts_are_right_on_average_for_the_rows_that_are_counted(self, published):
        text = self.text(published)
        assert "right on average for the rows that are counted" in text
        assert "totals leave them out" in text
        assert "holds the exact value of the counted rows 95 % of the time" in text
        rows = replace(published.plan.policy, unit=Unit("row"))
        plain = self.text(replace(published, plan=replace(published.plan, policy=rows)))
        assert "for all rows" in plain
        assert "confidence interval: holds the exact value 95 % of the time" in plain

    def test_a_number_without_an_interval_is_not_said_to_have_one(self, published):
        assert "or the dictionary says why not" in self.text(published)
