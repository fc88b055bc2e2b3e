"""Sources exchange names, places and sites of endpoints: each endpoint goes on being the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.models import Credential, Endpoint, HistoryEntry, Site
from sonar.models.topology import SourcedValues
from sonar.records.end_names import Ends
from sonar.registry.topology.applying import apply
from sonar.registry.topology.describing import described
from sonar.registry.topology.model import Topology
from sonar.registry.topology.sources import cric_atlas, rucio
from tests.sonar import topologies
from tests.sonar.rucio import protocol, rse

pytestmark = pytest.mark.django_db


class Row(NamedTuple):
    """What a source says of an endpoint; its place is a host and a path."""

    name: str
    place: str
    site: str
    state: str = "on"


Rows = Mapping[int, Row]
"""By the ids of the source."""

STATES = {
    "rucio": {
        "on": {},
        "off": {"availability_read": False, "availability_write": False},
        "tape": {"rse_type": "TAPE"},
        "no door": {"protocols": []},
    },
    "cric-atlas": {
        "on": {},
        "off": {"state": "DISABLED"},
        "tape": {"is_tape": True},
        "no door": {"aprotocols": {}},
    },
}


def of_rucio(rows: Rows) -> Topology:
    rses = {}
    for number, row in rows.items():
        host, _, path = row.place.partition("/")
        door = protocol("davs", host) | {"prefix": f"/{path}"}
        values = {"protocols": [door]} | STATES["rucio"][row.state]
        rses[f"{number:032x}"] = rse(row.name, f"{number:032x}", host, row.site) | values
    return rucio.parse({"export": {"rses": rses}})


def of_cric(rows: Rows) -> Topology:
    ends = {}
    for number, row in rows.items():
        host, _, path = row.place.partition("/")
        doors: dict[str, Any] = {"third_party_copy": [[f"davs://{host}:2880", 1, f"/{path}"]]}
        values = {"id": number, "aprotocols": doors} | STATES["cric-atlas"][row.state]
        ends[row.name] = topologies.rse(row.name, row.site, host, **values)
    sites = {row.site: topologies.site(row.site) for row in rows.values()}
    documents = {"sites": sites, "ends": ends} if ends else {"sites": sites}
    return cric_atlas.parse(documents)


SOURCES: dict[str, Callable[[Rows], Topology]] = {"rucio": of_rucio, "cric-atlas": of_cric}
BASE = {
    1: Row("A", "a.example.org/disk", "SITE-A"),
    2: Row("B", "b.example.org/disk", "SITE-B"),
    3: Row("C", "c.example.org/disk", "SITE-C"),
    4: Row("D", "d.example.org/disk", "SITE-D"),
}


class Source:
    """A source by its name; ``apply`` lets Sonar read what it says now."""

    def __init__(self, name: str) -> None:
        self.name = name

    def apply(self, rows: Rows, **options: bool) -> str:
        """Apply twice; the second time changes nothing. Return what is said the first time."""
        text = described(apply(SOURCES[self.name](rows), **options))
        again = apply(SOURCES[self.name](rows), **options)
        assert not again, f"{text}\n\nagain:\n{described(again)}"
        check(rows)
        return text


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Source:
    source = Source(request.param)
    source.apply(BASE, joins=True)
    return source


def by_id() -> dict[int, Endpoint]:
    """Return endpoints by the ids of the source."""
    rows = SourcedValues.objects.filter(endpoint__isnull=False).select_related("endpoint__site")
    base = 16 if rows.filter(source="rucio").exists() else 10
    return {int(row.source_id, base): row.endpoint for row in rows if row.endpoint}


def url(place: str) -> str:
    host, _, path = place.partition("/")
    return f"davs://{host}:2880/{path}".rstrip("/")


def check(rows: Rows) -> None:
    """Let nothing be tested at a place, and no result be stored, that is another one's."""
    endpoints, ends = by_id(), Ends.read()
    ends.learn({row.name: "" for row in rows.values()})
    gone = [endpoint.pk for number, endpoint in endpoints.items() if number not in rows]
    for number, row in rows.items():
        endpoint, meant = endpoints.get(number), ends.ids.get(row.name)
        if endpoint is None:  # it may be one that is gone, made again: people decide that
            assert meant in (None, *gone)
        elif endpoint.retired_at is None:
            assert (row.state, meant) == ("on", endpoint.pk)
            assert endpoint.base_url == url(row.place)
        else:
            assert meant in (None, endpoint.pk)
    for endpoint in Endpoint.objects.filter(pk__in=gone, retired_at=None):
        users = [
            n
            for n, row in rows.items()
            if row.state == "on" and url(row.place) == endpoint.base_url
        ]
        assert not set(users) & endpoints.keys()


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("fields", [("name",), ("place",), ("site",), Row._fields[:3]])
def test_endpoints_exchange_what_their_source_exchanges(
    source: Source, count: int, fields: tuple[str, ...]
) -> None:
    before = by_id()
    rows = dict(BASE)
    for number in range(1, count + 1):
        other = BASE[number % count + 1]
        rows[number] = BASE[number]._replace(**{field: getattr(other, field) for field in fields})
    text = source.apply(rows)
    assert "left out" not in text
    for number, row in rows.items():
        endpoint = by_id()[number]
        assert endpoint == before[number]
        assert endpoint.retired_at is None
        assert (endpoint.name, endpoint.site.name) == (row.name, row.site)
    # One entry for each: how they made room for each other is nobody's business.
    entries = HistoryEntry.objects.filter(kind="endpoint", action="changed")
    assert entries.count() == count
    # And back again.
    assert "left out" not in source.apply(BASE)
    assert {number: row.name for number, row in by_id().items()} == {
        number: row.name for number, row in BASE.items()
    }


def test_a_moving_endpoint_lets_others_follow_as_far_as_there_is_room(source: Source) -> None:
    """A and B exchange their places; C moves below where A was, and D to where C was."""
    rows = BASE | {
        1: BASE[1]._replace(place=BASE[2].place),
        2: BASE[2]._replace(place=BASE[1].place),
        3: BASE[3]._replace(place="a.example.org/disk/below"),
        4: BASE[4]._replace(place=BASE[3].place),
        5: Row("E", BASE[4].place, "SITE-D"),
    }
    text = source.apply(rows, joins=True)
    assert (
        "- C: registered and in use, but no longer usable: the base URL is the same as "
        "that of B, or one of the two URLs is below the other" in text
    )
    assert (
        "- D: registered and in use, but no longer usable: the base URL is the same as "
        "that of C, or one of the two URLs is below the other" in text
    )
    sentence = "the base URL is the same as that of D, or one of the two URLs is below the other"
    assert f"- E: {sentence}" in text
    in_use = Endpoint.objects.filter(retired_at=None).values_list("name", flat=True)
    assert list(in_use) == ["A", "B"]
    # Once there is room, they come back.
    rows[3] = BASE[3]._replace(place="c.example.org/new")
    assert "~ C: base URL" in source.apply(rows, joins=True)
    assert Endpoint.objects.filter(retired_at=None).count() == 5


@pytest.mark.parametrize("below", ["", "/below"])
@pytest.mark.parametrize("state", ["off", "tape", "no door", "gone", "gone and retired"])
def test_what_moves_to_the_place_of_one_out_of_use_is_not_tested_where_it_was(
    source: Source, state: str, below: str
) -> None:
    rows: dict[int, Row] = BASE | {2: BASE[2]._replace(place=f"{BASE[1].place}{below}")}
    if state.startswith("gone"):
        del rows[1]
    else:
        rows[1] = BASE[1]._replace(state=state)
    text = source.apply(rows, retires=state == "gone and retired")
    assert (
        "- B: registered and in use, but no longer usable: the base URL is the same as "
        "that of A, or one of the two URLs is below the other" in text
    )
    endpoints = by_id()
    assert endpoints[2].retired_at
    # What is gone may be in another document, unless the source has another one there.
    is_in_use = state == "gone" and below
    assert (endpoints[1].retired_at is None) == bool(is_in_use)
    if state == "gone" and not below:
        reason = "no longer usable: the base URL now belongs to B"
        assert f"- A: registered and in use, but {reason}" in text
    # As the sentence says.
    text = source.apply(rows)
    assert ("the other. A is not in use: change its base URL" in text) != bool(is_in_use)
    Endpoint.objects.filter(name="A").update(base_url="davs://elsewhere.example.org/disk")
    if state != "off":  # else the source would still have A there
        assert "~ B: base URL davs://b.example.org:2880/disk -> " in source.apply(rows)
        assert by_id()[2].retired_at is None


def test_what_stays_retired_was_retired_when_it_was(source: Source) -> None:
    rows = BASE | {1: BASE[1]._replace(state="tape"), 2: BASE[2]._replace(place=BASE[1].place)}
    source.apply(rows)
    before = by_id()[2].retired_at
    names = {2: rows[2]._replace(name="C"), 3: rows[3]._replace(name="B")}
    source.apply(rows | names | {4: BASE[4]._replace(state="off")})
    assert (by_id()[2].name, by_id()[2].retired_at) == ("C", before)
    assert by_id()[4].retired_at


def test_a_name_of_one_that_is_gone_is_the_name_of_what_has_it_now(source: Source) -> None:
    rows = BASE | {2: BASE[2]._replace(name="A")}
    del rows[1]
    text = source.apply(rows)
    assert "~ A.former: name A -> A.former" in text
    assert (by_id()[1].name, by_id()[2].name) == ("A.former", "B")
    assert by_id()[1].retired_at is None
    # It is still the same one.
    source.apply(rows | {1: BASE[1]._replace(name="Z")})
    assert by_id()[1].name == "A.former"


def test_a_name_that_went_to_tape_is_no_name_of_the_old_disk(source: Source) -> None:
    rows = BASE | {1: BASE[1]._replace(name="OLD"), 5: Row("A", "t.example.org/t", "T", "tape")}
    assert "- Rucio RSE A: now refers to something else in the source" in source.apply(rows)
    assert by_id()[1].name == "OLD"


def test_without_ids_the_names_tell_which_is_which(source: Source) -> None:
    """Two that exchange their names exchange their places here."""
    rows = BASE | {1: BASE[1]._replace(name="B"), 2: BASE[2]._replace(name="A")}
    topology = SOURCES[source.name](rows)
    ends = [facts.model_copy(update={"source_id": ""}) for facts in topology.endpoints]
    topology = topology.model_copy(update={"endpoints": ends})
    SourcedValues.objects.update(source_id="")
    before = {row.name: row.pk for row in Endpoint.objects.all()}
    assert len(apply(topology).endpoints) == 2
    assert not apply(topology)
    for name, host in (("A", "b"), ("B", "a")):
        row = Endpoint.objects.get(name=name)
        assert (row.pk, row.base_url) == (before[name], url(f"{host}.example.org/disk"))
        assert row.retired_at is None


def test_a_name_that_people_gave_stands_for_what_they_call_so(source: Source) -> None:
    Endpoint.objects.filter(name="C").update(name="MINE")
    rows = BASE | {1: BASE[1]._replace(name="MINE"), 2: BASE[2]._replace(name="A")}
    text = described(apply(SOURCES[source.name](rows)))
    sentence = "results with this name belong to another registered endpoint"
    assert f"- Rucio RSE MINE: {sentence}. Rename that endpoint" in text
    endpoints, ends = by_id(), Ends.read()
    ends.learn({"A": ""})
    assert [endpoints[number].name for number in BASE] == ["A.former", "B", "MINE", "D"]
    assert (ends.ids["A"], ends.ids["MINE"]) == (endpoints[2].pk, endpoints[3].pk)
    # As the sentence says.
    Endpoint.objects.filter(name="MINE").update(name="YOURS")
    assert "+ Rucio RSE MINE: A.former" in source.apply(rows)


def test_an_endpoint_that_cannot_move_is_not_tested_where_it_was(source: Source) -> None:
    """Its credential is not for the new host; and nothing can move to where it still is."""
    own = Credential.objects.create(name="own", hosts=["a.example.org"])
    Endpoint.objects.filter(name="A").update(credential=own)
    rows = BASE | {
        1: BASE[1]._replace(place=BASE[2].place),
        2: BASE[2]._replace(place=BASE[1].place),
    }
    text = source.apply(rows)
    stuck = "registered and in use, but no longer usable"
    assert f"- A: {stuck}: The credential of A is not valid for the host" in text
    assert f"- B: {stuck}: the base URL is the same as that of A" in text
    assert by_id()[1].retired_at
    assert by_id()[2].retired_at
    own.hosts += ["b.example.org"]
    own.save()
    source.apply(rows)
    assert not Endpoint.objects.exclude(retired_at=None).exists()


def test_sites_that_people_renamed_are_not_taken_for_others_of_the_source(source: Source) -> None:
    Site.objects.filter(name="SITE-A").update(name="SITE-E")
    rows = BASE | {0x10: Row("E", "e.example.org/disk", "SITE-E")}
    text = source.apply(rows, joins=True)
    assert (
        "- SITE-E: this name belongs to another registered site, which has a different name" in text
    )
    assert by_id()[1].site.name == "SITE-E"
    assert 0x10 not in by_id()


NAMES = st.sampled_from("ABCDEF")
PLACES = st.sampled_from(
    ["a.example.org/disk", "b.example.org/disk", "b.example.org/disk/x", "c.example.org"]
)
STEPS = st.lists(
    st.dictionaries(
        st.integers(1, 4),
        st.builds(
            Row, NAMES, PLACES, st.sampled_from(["S", "T"]), st.sampled_from(["on", "on", "tape"])
        ),
        min_size=1,
    ).filter(lambda rows: len({row.name for row in rows.values()}) == len(rows)),
    min_size=2,
    max_size=3,
)


@given(STEPS, st.booleans(), st.sampled_from(list(SOURCES)))
def test_whatever_a_source_exchanges_no_result_and_no_test_goes_astray(
    steps: list[dict[int, Row]], retires: bool, name: str
) -> None:
    SourcedValues.objects.all().delete()
    Endpoint.objects.all().delete()
    Site.objects.all().delete()
    for rows in steps:
        Source(name).apply(rows, joins=True, retires=retires)
