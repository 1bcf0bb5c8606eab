"""What a bundle says is true, complete, and says it of this release."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import bundle_worlds as worlds
import pytest
from jsonschema import Draft202012Validator

from discreet.formatting import percent_up
from discreet.ledger import Budget, Quota
from discreet.privacy import ApproxDP, Composed, DiscreteLaplace, Gaussian, PureDP, Relation, best_tpr
from discreet.query import Unit
from discreet.release.bundle.bundle_files import contents_of, readme_text
from discreet.release.bundle.bundle_writer import write_bundle
from discreet.release.bundle.claims import best_guess, best_tests, claim_of, mechanisms_of
from discreet.release.bundle.dictionary import dictionary_of, dictionary_page, meanings_of
from discreet.release.bundle.guarantee_page import checklist_page, guarantee_page
from discreet.release.bundle.manifest import json_bytes
from discreet.release.bundle.registry_entry import registry_entry
from discreet.release.bundle.verification import explain_bundle, verify_bundle
from discreet.release.bundle.wording import code, line
from discreet.release.plan import Period, Schedule
from discreet.release.published import Published

ADD = Relation.ADD_REMOVE


@pytest.fixture(scope="module")
def pure(tmp_path_factory) -> Published:
    return worlds.release(tmp_path_factory.mktemp("pure"), worlds.pure_text())


def with_policy(published: Published, **changes: object) -> Published:
    policy = replace(published.plan.policy, **changes)
    return replace(published, plan=replace(published.plan, policy=policy))


class TestLabels:
    """What codes mean stands in the report and in the dictionary; files of numbers keep the codes."""

    SAID = '{ categories = ["f", "m"], labels = { f = "women & <girls>", m = "=men" } }'

    @pytest.fixture(scope="class")
    @classmethod
    def bundle(cls, tmp_path_factory) -> Path:
        folder = tmp_path_factory.mktemp("labels")
        text = worlds.plan_text(more="").replace('{ categories = ["f", "m"] }', cls.SAID)
        return write_bundle(worlds.release(folder, text), folder / "written")

    def test_the_report_shows_them_beside_the_codes(self, bundle):
        text = (bundle / "report.html").read_text().replace("\u00a0", " ").replace("<wbr>", "")
        assert "women &amp; &lt;girls&gt; (f)" in text
        assert "=men (m)" in text

    def test_the_dictionary_has_them_for_programs_and_people(self, bundle):
        known = json.loads((bundle / "dictionary.json").read_text())
        (told,) = (
            column["bounds"]["reads"]["sex"]
            for table in known["tables"]
            if table["name"] == "middle"
            for column in table["files"][0]["columns"]
            if column["name"] == "sex"
        )
        assert told["labels"] == {"f": "women & <girls>", "m": "=men"}
        assert "=men (m)" in (bundle / "dictionary.md").read_text()

    def test_tables_keep_the_codes(self, bundle):
        for path in (bundle / "tables").glob("*.csv"):
            assert "men" not in path.read_text(), path.name
        assert "women" not in (bundle / "tables.json").read_text()

    def test_it_is_verified_with_its_ledger(self, bundle):
        assert verify_bundle(bundle, ledger=bundle.parent.parent / "hospital.ledger").outcome == "matches the ledger"

    def test_without_labels_no_file_speaks_of_them(self, written):
        assert not [path.name for path in written.rglob("*.*") if b"labels" in path.read_bytes()]


class TestGuess:
    @pytest.mark.parametrize("level", [0.01, 0.5, 1, 3, 10])
    def test_a_pure_guess_agrees_with_randomized_response(self, level):
        exact = math.exp(level) / (1 + math.exp(level))
        assert exact <= best_guess(PureDP(level), ADD) <= exact * (1 + 1e-9)

    @pytest.mark.parametrize("multiplier", [0.3, 1, 5, 40])
    def test_a_gaussian_guess_agrees_with_the_normal_law(self, multiplier):
        exact = NormalDist().cdf(1 / multiplier / 2)
        assert exact - 1e-12 <= best_guess(Gaussian(multiplier), ADD) <= exact + 1e-9

    def test_a_guess_dominates_brute_force(self):
        """Two neighbours, noise of scale 2 on whole numbers: the best test says yes where the law of one is higher."""
        weight = [math.exp(-abs(k) / 2) for k in range(-200, 201)]
        law = [w / sum(weight) for w in weight]
        right = sum(max(a, b) for a, b in zip([*law, 0.0], [0.0, *law], strict=True)) / 2
        assert right - 1e-12 <= best_guess(DiscreteLaplace(2, 1), ADD) <= right + 1e-9

    def test_what_is_certain_is_certain(self):
        assert best_guess(ApproxDP(0, 1), ADD) == 1.0

    @pytest.mark.parametrize(
        ("share", "text"),
        [(0.5, "50.0 %"), (0.62801, "62.9 %"), (0.99971, "99.98 %"), (1.0, "100 %"), (0.9999999999, "100 %")],
    )
    def test_shares_are_rounded_up(self, share, text):
        assert percent_up(share) == text


class TestTests:
    @pytest.mark.parametrize("multiplier", [0.5, 1, 4])
    def test_the_curve_dominates_the_normal_law_and_is_close(self, multiplier):
        alarms, found = best_tests(Composed([Gaussian(multiplier)]), ADD)
        law = NormalDist()
        for rate, share in zip(alarms[1:-1], found[1:-1], strict=True):
            exact = law.cdf(law.inv_cdf(rate) + 1 / multiplier)
            assert exact <= share <= exact + 0.01
        assert found[-1] == 1.0

    def test_the_curve_dominates_the_proven_bound_of_a_release(self, published):
        alarms, found = best_tests(published.event, ADD)
        for index in (6, 30):
            proven = best_tpr(published.event, Fraction(alarms[index]), relation=ADD)
            assert proven - 0.002 <= found[index] <= proven + 0.02

    def test_nobody_does_worse_than_guessing(self, published):
        alarms, found = best_tests(published.event, ADD)
        assert all(share >= rate for rate, share in zip(alarms, found, strict=True))
        assert list(found) == sorted(found)


class TestGuarantee:
    def test_it_says_who_how_much_and_what_not(self, published):
        page = guarantee_page(published, claim_of(published))
        for said in ("Every patient is protected", "right in at most", "Facts about people in general", "not protected",
                     "ε = 8, δ = 1e", "P[M(D) ∈ S] ≤ "
                     "e^ε", "known by law", "`by_district`"):  # fmt: skip
            assert said in page
        assert "DUMMY" not in page

    def test_its_numbers_are_those_of_the_event(self, published):
        claim = claim_of(published)
        page = guarantee_page(published, claim)
        assert f"ε = {claim.epsilon_text} and δ = 1e-7" in page
        assert Fraction(claim.epsilon_text) >= Fraction(published.epsilon)
        assert percent_up(claim.guess) in page
        assert claim.factor is not None
        assert claim.factor >= Fraction(math.exp(published.epsilon))

    def test_pure_privacy_is_told_as_a_bet(self, pure):
        page = guarantee_page(pure, claim_of(pure))
        assert "As a bet" in page
        assert "plus a chance" not in page
        assert "The numbers that the plan calls invariant" not in page

    def test_a_small_chance_is_told_in_words(self, published):
        assert "plus a chance of 1 in 10,000,000" in guarantee_page(published, claim_of(published))

    def test_rows_are_told_as_rows(self, published):
        rows = with_policy(published, unit=Unit("row"))
        page = guarantee_page(rows, claim_of(rows))
        assert "A person with several rows is protected less" in page
        assert "Is one person never in several rows?" in checklist_page(rows, claim_of(rows))

    @pytest.mark.parametrize(
        ("unit", "several"), [({"name": "household"}, "Several households at once"), ({}, "Several at once")]
    )
    def test_several_units_are_called_by_their_name(self, published, unit, several):
        named = with_policy(published, unit=Unit("patient", **unit))
        page = guarantee_page(named, claim_of(named))
        assert f"{several}: the promise weakens" in page
        assert "family:" not in page

    def test_the_lifetime_and_this_bundle_are_compared_by_the_same_measure(self, published):
        claim = claim_of(published)
        assert claim.guess < claim.pair_guess < claim.lifetime_guess
        told = f"by ε and δ alone what is in this bundle allows {percent_up(claim.pair_guess)}"
        assert told in guarantee_page(published, claim)
        alike = replace(claim, guess=claim.pair_guess)
        assert "alone what is in this bundle" not in guarantee_page(published, alike)

    def test_totals_of_tables_with_other_groups_are_said_to_differ(self, published):
        told = "totals of the same thing then differ from table to table by more than the noise"
        assert told in guarantee_page(published, claim_of(published))
        one = replace(published, tables=published.tables[:1])
        assert told not in guarantee_page(one, claim_of(one))

    def test_no_lifetime_budget_is_told(self, published):
        windows = with_policy(published, budget=Budget(), quotas=(Quota(Budget(epsilon=1), window="day"),))
        claim = claim_of(windows)
        assert claim.lifetime_guess is None
        assert claim.times is None
        assert "no lifetime budget" in guarantee_page(windows, claim)
        assert "windows add up: ε = 1, pure per day; k days: kε." in guarantee_page(windows, claim)
        assert "there is no lifetime budget" in checklist_page(windows, claim)

    def test_how_many_releases_fit_is_what_the_ledger_says(self, published, tmp_path):
        """An untouched ledger with the same budget takes just as many."""
        from discreet.ledger import Account, Ledger

        policy = published.plan.policy
        with Ledger.open("memory", Account("new", policy.unit.column, ADD, policy.budget)) as book:
            assert claim_of(published).times == book.times_left(published.event)

    def test_what_was_left_is_told_and_nothing_where_nobody_knows(self, published):
        assert "% of it were left" in guarantee_page(published, claim_of(published))
        silent = replace(published, ledger=replace(published.ledger, left=None))
        assert "were left" not in guarantee_page(silent, claim_of(silent))

    def test_a_dummy_says_so(self, published):
        dummy = worlds.dummy(published)
        assert "**DUMMY" in guarantee_page(dummy, claim_of(dummy))
        assert "DUMMY" in readme_text(dummy, claim_of(dummy))


# What may not stand in a text about a unit whose rows limits can cut, and what makes it true.
FLAT = (
    r"unbiased",
    r"right on average(?! for the (?:rows that are counted|counted rows))",
    r"holds? the exact \S+(?! of the counted rows)\b(?= with| \d|,)",
    r"where the exact value lies",
)
NAMED_BY_ITS_COLUMN = r"\b(?:[Ee]very|[Ee]ach|[Oo]ne|a|that|of) SERIALNO\b(?<!value of SERIALNO)(?<!values of SERIALNO)"


def texts_of(published: Published) -> dict[str, str]:
    """Return what people read of a bundle."""
    files = contents_of(published)
    names = ("README.txt", "report.html", "guarantee.md", "checklist.md", "dictionary.md", "dictionary.json")
    return {name: " ".join(files[name].decode().split()) for name in (*names, "registry.json")}


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("households")


@pytest.fixture(scope="module")
def households(home) -> Published:
    return worlds.release(home, worlds.household_text(), unit="SERIALNO")


class TestUnit:
    """A bundle calls its unit by its name, and says of which rows its numbers are where limits can cut."""

    def test_no_text_says_flatly_what_holds_for_counted_rows_only(self, households):
        for name, text in texts_of(households).items():
            assert not [found for flat in FLAT for found in re.findall(flat, text)], name
            if name not in ("registry.json", "checklist.md"):
                assert "of the counted rows" in text or "about the counted rows" in text, name

    def test_where_rows_are_units_the_plain_sentences_stay(self, published):
        texts = texts_of(with_policy(published, unit=Unit("row")))
        said = [flat for flat in FLAT for text in texts.values() if re.search(flat, text)]
        assert {FLAT[0], FLAT[1], FLAT[2]} <= set(said), "the scan of the texts above could not fail"

    def test_every_text_calls_the_unit_by_its_name(self, households):
        for name, text in texts_of(households).items():
            assert not re.findall(NAMED_BY_ITS_COLUMN, text), name
            assert "household" in text, name
        texts = texts_of(households)
        assert (
            "Every household is protected: everybody who shares one value of the column “SERIALNO”"
            in texts["README.txt"]
        )
        assert "if its households plus noise exceed" in texts["report.html"]
        assert "one household is counted on one day of the series" in texts["dictionary.md"]

    @pytest.mark.parametrize(
        ("unit", "said"),
        [
            (
                Unit(["clinic", "patient"]),
                "Every combination of clinic and patient is protected: everybody who shares one value of each of the "
                "columns “clinic” and “patient”, with all their rows in all private tables together.",
            ),
            (
                Unit("patient", window="day", time="admitted", name="visitor"),
                "Every day of one visitor is protected: everybody who shares one value of the column “patient” and one "
                "day of “admitted” in UTC, with all their rows of that day in all private tables together.",
            ),
        ],
    )
    def test_units_of_several_columns_and_of_windows_are_told_in_words(self, published, unit, said):
        texts = texts_of(with_policy(published, unit=unit))
        assert said in texts["README.txt"]
        assert not [name for name, text in texts.items() if unit.account in text and name != "registry.json"]

    def test_a_text_that_takes_the_column_for_the_name_is_noticed(self, households):
        unnamed = with_policy(households, unit=replace(households.plan.policy.unit, name=None))
        found = {name for name, text in texts_of(unnamed).items() if re.search(NAMED_BY_ITS_COLUMN, text)}
        assert {"README.txt", "report.html", "guarantee.md", "dictionary.md", "registry.json"} <= found

    def test_the_name_is_no_part_of_what_was_promised_and_paid(self, households, home, tmp_path):
        manifest = json.loads(contents_of(households)["manifest.json"])
        assert manifest["guarantee"]["unit"] == "SERIALNO"
        assert manifest["running"]["so_far"]["unit"] == "SERIALNO"
        found = verify_bundle(write_bundle(households, tmp_path), ledger=home / "hospital.ledger")
        assert not found.problems, str(found)

    def test_a_note_of_several_tables_is_said_once(self, households):
        page = dictionary_page(households, dictionary_of(households))
        assert page.count("each household is counted in at most 2 groups, with at most 3 rows in each") == 1
        assert page.count("values and ± are of the counted rows") == 1
        assert "- `by_district`, `by_district_sex`, `middle`, `wards`: each household is counted" in page
        listed = dictionary_of(households)["tables"]
        assert any("rows with other values are not counted" in one["hidden_groups"] for one in listed)
        assert all(any("household is counted" in note for note in table["notes"]) for table in listed)

    def test_a_value_of_a_group_that_may_be_empty_says_so_beside_the_value(self, households):
        texts = texts_of(households)
        for name in ("report.html", "dictionary.md", "dictionary.json"):
            assert "of a group without values it is arbitrary" in texts[name], name
            assert "MEDIAN of a group without values is an arbitrary value" in texts[name], name

    def test_a_bundle_is_explained_with_the_number_of_its_report(self, households, tmp_path):
        meaning = explain_bundle(write_bundle(households, tmp_path))
        claim = claim_of(households)
        assert percent_up(meaning.success) == percent_up(claim.guess)
        assert f"ε = {claim.epsilon_text}, δ = {claim.delta_text}" in meaning.said
        assert "alone, whatever the noise, a bound of" in str(meaning)
        assert "Is one household in the data or not?" in str(meaning)
        assert "apart from a chance of" not in str(meaning)

    def test_the_guarantee_tells_both_bounds_of_one_epsilon(self, households):
        text = texts_of(households)["guarantee.md"]
        assert "alone, whatever the noise, which is what discreet explain-epsilon explains, only" in text

    def test_the_first_card_says_whose_each_delta_is(self, households):
        claim = claim_of(households)
        text = " ".join(re.sub(r"<[^>]+>", " ", texts_of(households)["report.html"]).replace("&nbsp;", " ").split())
        assert f"in this bundle, at δ = {claim.delta_text}. The lifetime budget of the data set: ε = 8" in text


def test_noise_is_named_once_each(published):
    assert len(set(mechanisms_of(published.event))) == len(mechanisms_of(published.event)) >= 3


class TestDictionary:
    def test_every_column_of_every_file_is_there(self, published, written):
        import pyarrow.parquet as pq

        for table in dictionary_of(published)["tables"]:
            for file in table["files"]:
                names = [column["name"] for column in file["columns"]]
                for path in file["paths"]:
                    if path.endswith(".parquet"):
                        assert pq.read_schema(written / path).names == names
                    else:
                        assert (written / path).read_text().split("\n")[0] == ",".join(f'"{name}"' for name in names)

    def test_meanings_are_words(self, published):
        table = next(table for table in published.tables if table.plan.name == "by_district")
        meanings = meanings_of(published.plan, table.plan)
        assert {name: meaning.words for name, meaning in meanings.items()} == {
            "district": "district", "stays": "number of rows", "cost": "mean of cost",
        }  # fmt: skip
        assert set(meanings["cost"].reads) == {"cost"}

    def test_levels_and_measures_of_a_family_are_explained(self, published):
        plan = replace(
            published.plan.tables[0],
            sql="SELECT 1",
            by=("region",),
            measures={"n": "COUNT(DISTINCT patient)", "c": "SUM(cost)"},
        )
        meanings = meanings_of(published.plan, plan)
        assert meanings["region"].words == "level region: groups of district"
        assert meanings["n"].words == "number of different values of patient"
        assert meanings["c"].words == "sum of cost"
        named = with_policy(published, unit=Unit("patient", name="household")).plan
        assert meanings_of(named, plan)["n"].words == "number of households"

    def test_bounds_units_and_missing_values_are_told(self, published):
        (table,) = (t for t in dictionary_of(published)["tables"] if t["name"] == "all_stays")
        columns = {column["name"]: column for column in table["files"][0]["columns"]}
        assert columns["cost"]["bounds"]["reads"]["cost"]["clamped_to"] == ["0", "20000"]
        assert columns["cost"]["unit"] == "as in cost"
        assert columns["cost"]["missing"] == "missing and unreadable values are left out"
        assert columns["stays"]["unit"] == "rows"
        assert "95 %" in columns["stays_low"]["meaning"]

    def test_a_replaced_missing_value_is_told(self, published):
        import discreet as dp

        source = published.plan.policy.tables["stays"]
        columns = {
            **source.columns,
            "cost": dp.between(0, 20000, missing=5),
            "day": dp.between(date(2020, 1, 1), date(2021, 1, 1)),
        }
        changed = with_policy(published, tables={"stays": replace(source, columns=columns)})
        (table,) = (t for t in dictionary_of(changed)["tables"] if t["name"] == "all_stays")
        cost = next(column for column in table["files"][0]["columns"] if column["name"] == "cost")
        assert cost["missing"] == "a missing or unreadable cost counts as 5"

    def test_the_page_has_every_table(self, published):
        page = dictionary_page(published, dictionary_of(published))
        assert all(f"(`{table.plan.name}`)" in page for table in published.tables)
        assert "biased" in page


REGISTRY = json.loads((Path(__file__).parents[2] / "vectors" / "registry_fields.json").read_text())["entry"]
BY_HAND = {"data_product_sector"}  # Only the publisher knows it, and the registry does not require it.


class TestRegistry:
    """The fields and the words of the public registry, as its schema has them."""

    def test_an_entry_has_the_fields_types_and_values_of_the_registry(self, published, pure):
        once = replace(published, plan=replace(published.plan, schedule=Schedule()), period=Period(label="once"))
        concentrated = replace(with_policy(published, budget=Budget(rho=1)), event=Gaussian(10))
        allowance = replace(concentrated.plan.allowance, epsilon=None, rho=Fraction(1, 10))
        by_rho = replace(concentrated, plan=replace(concentrated.plan, allowance=allowance))
        validator = Draft202012Validator(REGISTRY, format_checker=Draft202012Validator.FORMAT_CHECKER)
        for release in (published, pure, once, by_rho):
            entry = json.loads(json_bytes(registry_entry(release, claim_of(release))))
            assert list(validator.iter_errors(entry)) == []

    def test_a_dummy_lacks_its_date_so_that_nobody_registers_it(self, published):
        entry = registry_entry(worlds.dummy(published), claim_of(worlds.dummy(published)))
        (error,) = Draft202012Validator(REGISTRY).iter_errors(entry)
        assert "publication_date" in error.message

    def test_every_field_of_its_tier_is_filled(self, published):
        entry = registry_entry(published, claim_of(published))
        parts = REGISTRY["properties"]["deployment"]["properties"]
        assert set(entry["deployment"]) == set(parts)
        for name, part in parts.items():
            asked = {field for field, kind in part["properties"].items() if kind.get("tier", 1) <= entry["tier"]}
            assert asked - BY_HAND <= set(entry["deployment"][name]), name

    def test_the_words_are_those_of_the_registry(self, published, pure):
        for release, variant in ((published, "Approximate DP"), (pure, "Pure DP")):
            entry = registry_entry(release, claim_of(release))["deployment"]
            assert entry["dp_variant"]["variant_name"] == variant
            assert entry["basic"]["data_product_type"] == "Summary statistics"
            assert entry["deployment_model"]["model_name"] == "Central"
            assert entry["deployment_model"]["release_type"] == "Many releases"
            assert entry["deployment_model"]["access_type"] == "Non-interactive"
            assert date.fromisoformat(entry["basic"]["publication_date"])
            numbers = entry["privacy_loss"]["privacy_parameters"]
            assert numbers == {"delta": float(release.delta), "epsilon": release.epsilon}
            assert all(isinstance(text, str) for text in entry["implementation"].values())

    def test_concentrated_privacy_has_its_name_and_its_rho(self, published):
        other = replace(with_policy(published, budget=Budget(rho=1)), event=Gaussian(10))
        plan = replace(other.plan, allowance=replace(other.plan.allowance, epsilon=None, rho=Fraction(1, 10)))
        entry = registry_entry(replace(other, plan=plan), claim_of(other))["deployment"]
        assert entry["dp_variant"]["variant_name"] == "Zero-concentrated DP"
        assert entry["privacy_loss"]["privacy_parameters"]["rho"] == 0.1

    def test_a_plan_that_releases_once_says_so(self, published):
        once = replace(published, plan=replace(published.plan, schedule=Schedule()), period=Period(label="once"))
        model = registry_entry(once, claim_of(once))["deployment"]["deployment_model"]
        assert (model["release_type"], model["data_source_type"]) == ("One release", "Static")
        assert "published once" in readme_text(once, claim_of(once))


class TestManifest:
    def test_it_says_where_the_ledger_has_it(self, written, published):
        manifest = json.loads((written / "manifest.json").read_text())
        assert manifest["ledger"]["charge"] == published.ledger.charge
        assert manifest["ledger"]["hash"] == published.ledger.hash
        assert manifest["verify"] == "discreet bundle verify stays-2026-01"
        assert {"discreet", "python", "duckdb"} <= manifest["versions"].keys()
        assert manifest["guarantee"]["epsilon"] == published.epsilon
        assert Fraction(manifest["guarantee"]["delta"]) == published.delta


@pytest.mark.parametrize(
    "text", ["a|b", "<b>", "[x](http://y)", "`c`", "# h", "*x*", "a\nb", "x\x1b[31m", "~~s~~", "\\"]
)
class TestMarkdown:
    def test_no_text_becomes_a_mark(self, text):
        from markdown import Markdown

        html = Markdown(extensions=["tables"]).convert(f"a {line(text)} z")
        assert html.count("<") == 2  # the paragraph, and nothing else

    def test_no_name_becomes_a_mark(self, text):
        assert "\n" not in code(text)
        assert "|" not in code(text).replace("\\|", "")
