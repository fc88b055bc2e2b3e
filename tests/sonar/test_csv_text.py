"""What spreadsheets take for a formula leaves as a text, and comes back as it was."""

import csv
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from hypothesis import example, given
from hypothesis import strategies as st

from sonar.models import Endpoint, Profile, Site, SizeClass, Transfer
from sonar.notation import csv_text
from sonar.results import store
from sonar.results.store import Result
from tests.matrix.responses import csv_rows
from tests.sonar.world import NOW, three_endpoints

FORMULAS = (
    *("=1+1", '=HYPERLINK("http://x.example","y")', "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1"),
    *("-", "+", "=", "-1.5.2", "+49 30 1234", "-1,5", "- 1", "+-1", "-inf", "-1e", "-0x1"),
)
NUMBERS = ("-1.5", "+1", "-1", "-.5", "+1.", "-1e5", "-1.5E-10")
PLAIN = ("", "503", "a=b", "'", "''", "'a", "a'=1", "'1", "é", "\n=1", " =1", "1-1")
APOSTROPHES = tuple(f"{some}{one}" for some in ("'", "''") for one in (*FORMULAS, *NUMBERS))
ALL = (*FORMULAS, *NUMBERS, *PLAIN, *APOSTROPHES)
texts = st.text(st.sampled_from("'=+-@\t\r\n1.5eE ab\"")) | st.sampled_from(ALL)


@given(texts)
@example("'=1")
def test_every_text_comes_back_and_none_begins_as_a_formula(text: str):
    written = csv_text.quoted(text)
    assert csv_text.unquoted(written) == text
    assert written[:1] not in tuple("=+@\t\r-") or written in NUMBERS or is_number(written)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return any(map(str.isdigit, text))


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_an_apostrophe(text: str):
    assert csv_text.quoted(text) == f"'{text}"


@pytest.mark.parametrize("text", [*NUMBERS, *PLAIN])
def test_a_number_and_other_text_stay_as_they_are(text: str):
    assert csv_text.quoted(text) == csv_text.unquoted(text) == text


@pytest.mark.django_db
@given(st.lists(texts, min_size=30, max_size=30))
@example(list(ALL))
def test_postgresql_writes_them_alike(some: list[str]):
    with connection.cursor() as cursor:
        statement = f"SELECT {csv_text.sql('one')} FROM unnest(%s::text[]) WITH ORDINALITY AS of"
        statement = f"{statement}(one, at) ORDER BY at"
        cursor.execute(statement, [some])
        assert [row[0] for row in cursor] == [csv_text.quoted(one) or None for one in some]


# Files and answers


@pytest.fixture
def failures(db: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One failed result for each text, newest first, whose error it is."""
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    source, destination, _ = three_endpoints()
    Site.objects.update(cloud="=cloud()")
    Endpoint.objects.update(label="@label")
    profile = Profile.objects.create(mover="gfal2", origin="external")
    errors = [one for one in ALL if one]
    store.store(
        Result(
            id=UUID(int=number),
            source_id=source.id,
            destination_id=destination.id,
            size_class_id=SizeClass.objects.get(name="small").id,
            profile_id=profile.id,
            state="failed",
            started_at=NOW - timedelta(minutes=number),
            seconds=1.5,
            bytes=20_000_000,
            error=error,
            error_where="source",
        )
        for number, error in enumerate(errors, 1)
    )
    return errors


def test_export_import_and_export_again_are_the_same_bytes(failures: list[str], tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    quiet: dict[str, Any] = {"stdout": StringIO(), "stderr": StringIO()}
    call_command("export_results", str(first), **quiet)
    Transfer.objects.all().delete()
    call_command("import_results", str(first), **quiet)
    call_command("export_results", str(second), **quiet)
    assert first.read_bytes() == second.read_bytes()
    kept = Transfer.objects.order_by("-started_at").values_list("error", flat=True)
    assert list(kept) == failures
    with first.open(newline="", encoding="utf-8") as file:
        written = [row["error"] for row in csv.DictReader(file)]
    assert written == [csv_text.quoted(one) for one in reversed(failures)]


def test_results_of_the_api_have_their_errors_quoted_in_csv_and_as_they_are_in_json(
    client, failures: list[str]
):
    address = "/api/v1/transfers/?state=failed&window=24h"
    written = [row["error"] for row in csv_rows(client, f"{address}&format=csv")]
    assert written == [csv_text.quoted(one) for one in failures]
    answered = client.get(address).json()["transfers"]
    assert [one["error"] for one in answered] == failures
    (one,) = csv_rows(client, f"/api/v1/transfers/{UUID(int=1)}/?format=csv")
    assert one["error"] == f"'{failures[0]}"


@pytest.mark.parametrize(
    ("address", "column", "text"),
    [
        ("sites/?format=csv", "cloud", "'=cloud()"),
        ("endpoints/?format=csv", "label", "'@label"),
        ("links/?size=small&origin=all&format=csv", "source.cloud", "'=cloud()"),
        ("links/?size=small&origin=all&format=csv", "destination.label", "'@label"),
        (
            "matrix/?size=small&origin=all&rows=cloud&columns=cloud&format=csv",
            "source",
            "'=cloud()",
        ),
    ],
)
def test_what_others_wrote_about_sites_and_endpoints_is_quoted_too(
    client, failures: list[str], address: str, column: str, text: str
):
    found = {row[column] for row in csv_rows(client, f"/api/v1/{address}")}
    assert found == {text}
