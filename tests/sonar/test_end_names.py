"""Records may call their ends what others call them: which endpoint that is, and what is none."""

from __future__ import annotations

import uuid

import pytest

from sonar.models import Endpoint, Site, Transfer, UnknownAlias
from sonar.models.aliases import AliasKind
from sonar.records import importing
from sonar.records.admission import Admission, WrongRecordsError
from sonar.records.end_names import Ends
from sonar.registry import aliases
from tests.sonar.test_import_results import line, quiet, refused, run, write
from tests.sonar.test_records import DONE, FAILED
from tests.sonar.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_four")]


@pytest.fixture
def glasgow(grid: tuple[Endpoint, Endpoint, Endpoint]) -> Endpoint:
    """Return Glasgow's endpoint, which has a name of each kind; LANCS is known elsewhere, too."""
    glasgow, lancs, _ = grid
    aliases.assign(AliasKind.RSE, "UKI-GLASGOW", glasgow)
    aliases.assign(AliasKind.SE_HOST, "se.glasgow.example", glasgow)
    aliases.assign(AliasKind.RSE, "RAL_DATADISK", lancs)
    aliases.assign(AliasKind.NETSITE, "LHC-GLASGOW", glasgow.site)
    aliases.assign(AliasKind.OSG_GROUP, "twofold", lancs.site)
    aliases.assign(AliasKind.RCSITE, "twofold", glasgow)
    aliases.assign(AliasKind.OSG_RESOURCE, "twofold", glasgow)
    return glasgow


@pytest.mark.parametrize(
    "name",
    [
        "UKI-GLASGOW",
        "SE.glasgow.Example",
        "LHC-GLASGOW",
        "GLASGOW",
        "glasgow",  # the host of its base URL
        "twofold",  # an endpoint counts before a site
    ],
)
def test_a_name_of_others_is_the_one_endpoint_that_it_stands_for(glasgow, name):
    known = Admission.at(NOW)
    [record] = known.admit([FAILED | {"source": name, "error": "at glasgow: no"}])
    result = known.result(record)
    assert result.source_id == glasgow.pk
    assert result.error == "at GLASGOW_DATADISK: no"


def test_an_own_name_is_never_another_endpoint_and_costs_no_question(
    glasgow, django_assert_num_queries
):
    """An alias calls Lancaster so, and still what was exported is imported as it was."""
    known = Admission.at(NOW)
    with django_assert_num_queries(0):
        [record] = known.admit([DONE])
    assert record.destination == "RAL_DATADISK"
    assert known.result(record).destination_id == Endpoint.objects.get(name="RAL_DATADISK").pk
    with django_assert_num_queries(1 + 5):
        Ends.read().learn({f"name-{n}": "" for n in range(99)} | {"LHC-GLASGOW": ""})


def test_what_is_ambiguous_or_nobody_says_so(glasgow):
    for label in "ABCD":
        Endpoint.objects.create(
            name=f"GLASGOW_{label}", site=glasgow.site, base_url=f"fake://glasgow/{label}"
        )
    Site.objects.create(name="EMPTY")
    names = ("GLASGOW", "glasgow", "EMPTY", "NOBODY", "a\0\ud800", "UKI-GLASGOW")
    ends = [(name, "RAL_DATADISK") for name in names] + [("UKI-GLASGOW", "GLASGOW_DATADISK")]
    rows = [DONE | {"source": source, "destination": ral} for source, ral in ends]
    with pytest.raises(WrongRecordsError) as caught:
        Admission.at(NOW).admit(rows)
    several = "5 endpoints, GLASGOW_A, GLASGOW_B, GLASGOW_C and 2 more: use the name of one of them"
    nothing = "is not registered: it is neither an endpoint nor an alias of one"
    said = {place: error.problems for place, error in caught.value.records.items()}
    assert said == {
        0: [("source", f"source 'GLASGOW' matches {several}")],
        1: [("source", f"source 'glasgow' matches {several}")],
        2: [("source", "source 'EMPTY' matches EMPTY, which has no endpoint in use")],
        3: [("source", f"source 'NOBODY' {nothing}")],
        4: [("source", f"source 'a\\x00\\ud800' {nothing}")],
        6: [
            (
                "destination",
                "destination 'GLASGOW_DATADISK' must differ from the source",
            )
        ],
    }


@pytest.mark.parametrize("also", [{}, {"bytes": " 7 "}], ids=["by the column", "by the row"])
def test_a_file_says_its_ends_as_others_do(tmp_path, glasgow, also):
    # Another endpoint of that server, which errors do not mean.
    Endpoint.objects.create(name="AAA", site=glasgow.site, base_url="fake://glasgow/another")
    failed = line(1, source="UKI-GLASGOW", state="failed", error="glasgow", error_where="source")
    lines = [failed, line(2, source="se.glasgow.example", **also), line(3)]
    assert "3 accepted" in run(write(tmp_path / "some.csv", lines))
    assert set(Transfer.objects.values_list("source__name", flat=True)) == {"GLASGOW_DATADISK"}
    assert Transfer.objects.get(id=uuid.UUID(int=1)).error == "GLASGOW_DATADISK"


def test_a_name_that_stands_for_something_else_by_then_is_said(tmp_path, glasgow):
    path = write(tmp_path / "some.csv", [line(1, source="UKI-GLASGOW")])
    with importing.checked(path, NOW, quiet) as sound:
        aliases.assign(AliasKind.RSE, "UKI-GLASGOW", Endpoint.objects.get(name="LANCS_DATADISK"))
        with pytest.raises(importing.FaultyFileError, match="changed during the check"):
            importing.keep(sound, NOW, quiet)


def test_unknown_aliases_are_counted_with_an_example(tmp_path, grid):
    lines = [line(1), line(2, source="MOON"), line(3, destination="se.moon.example")]
    path = write(tmp_path / "some.csv", [*lines, line(4, source="MOON")])
    assert "/operations/aliases/" not in refused("--check", path)
    assert not UnknownAlias.objects.exists()
    for _ in range(2):
        said = refused(path)
    assert said.splitlines()[2:] == [
        "  line 4: destination 'se.moon.example' is not registered: it is neither an endpoint nor "
        "an alias of one",
        "  line 5: source 'MOON' is not registered: it is neither an endpoint nor an alias of one",
        "  Unknown names are listed on /operations/aliases/, where operators can assign them to "
        "endpoints and sites.",
    ]
    columns = ("kind", "name", "source", "times", "example")
    assert list(UnknownAlias.objects.values_list(*columns)) == [
        ("rse", "MOON", "results", 2, "source of a transfer to RAL_DATADISK"),
        (
            "se_host",
            "se.moon.example",
            "results",
            2,
            "destination of a transfer from GLASGOW_DATADISK",
        ),
    ]
    aliases.assign(AliasKind.RSE, "MOON", grid[0])
    aliases.assign(AliasKind.SE_HOST, "se.moon.example", grid[1])
    assert "4 accepted" in run(path)
