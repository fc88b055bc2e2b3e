"""The page of all sites."""

import pytest
from django.test import Client

from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Endpoint, Site
from sonar.results import sealing
from tests.conditions import assessed_at, stored_condition
from tests.html import Page
from tests.matrix import changed_site, responses, world
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


def look(client: Client, text: str = "") -> Page:
    return responses.page(client, f"/sites/{text}")


def rows(client: Client, text: str = "") -> list[list[str]]:
    return look(client, text).table("table.sites tbody tr")


def heads(client: Client, text: str = "") -> list[str]:
    return look(client, text).texts("table.sites thead th")


WRONG = ("failing links", "slower as", "vs baseline")


def facts(client: Client, text: str = "") -> list[list[str]]:
    """Return the rows without the columns of what is wrong."""
    names, *lines = look(client, text).table("table.sites tr")
    return [
        [cell for name, cell in zip(names, line, strict=True) if not name.startswith(WRONG)]
        for line in lines
    ]


def order(client: Client, text: str = "") -> list[str]:
    return [row[0] for row in rows(client, text)]


@pytest.fixture
def measured(small_world) -> World:
    transfer(small_world.ral, small_world.glasgow, 10.0, ago=HOUR)
    transfer(small_world.glasgow, small_world.ral, 4.0)
    transfer(small_world.glasgow, small_world.desy, None)
    Site.objects.filter(name="RAL").update(wan_gbit_s=0.4)
    return small_world


def test_each_site_stands_with_its_numbers(client, measured):
    assert facts(client) == [
        ["DESY", "DE", "2", "DE", "2", "–", "–", "–", "0 %", "30 min ago"],
        ["Glasgow", "UK", "2", "GB", "1", "–", "4.00", "10.0", "67 %", "30 min ago"],
        ["RAL", "UK", "1", "GB", "1", "0.4", "10.0", "4.00", "100 %", "30 min ago"],
    ]
    assert "Showing 3 sites." in look(client).words


def test_tags_are_a_column_where_a_listed_site_has_some(client, measured):
    Site.objects.filter(name="RAL").update(tags=["atlas", "lhcone"])
    assert [row[:6] for row in facts(client)] == [
        ["DESY", "DE", "2", "DE", "", "2"],
        ["Glasgow", "UK", "2", "GB", "", "1"],
        ["RAL", "UK", "1", "GB", "atlas, lhcone", "1"],
    ]
    assert heads(client)[3:6] == ["country", "tags", "endpoints"]
    assert "ordering=tags" not in look(client).source
    assert facts(client, "?search=glas")[0][:5] == ["Glasgow", "UK", "2", "GB", "1"]
    assert heads(client, "?search=glas")[3:5] == ["country", "endpoints"]


def test_the_means_are_the_averages_of_the_matrix_of_sites(client, db):
    world.make_published()
    answered = grid.build(MatrixQuery(rows="site", columns="site"), NOW)
    at = heads(client).index("mean as source")
    shown = {row[0]: row[at : at + 2] for row in rows(client)}
    for group, mean in zip(answered.sources, answered.averages.row.tolist(), strict=True):
        if mean == mean:
            assert shown[group.name][0] == f"{mean:.3g}".ljust(4, "0")[:4]


def test_what_is_wrong_comes_first_with_counts_and_ratios(client, db):
    changed_site.make()
    shown = rows(client)
    assert [row[:6] for row in shown[:3]] == [
        ["UKI-SCOTGRID-GLASGOW", "1", "0", "4", "0.99×", "0.99×"],
        ["DESY-HH", "1", "0", "0", "1.00×", "–"],
        ["INFN-T1", "0", "1", "0", "0.30×", "1.03×"],
    ]
    assert heads(client)[1:6] == [
        "failing links ▼",
        "slower as source",
        "slower as destination",
        "vs baseline as source",
        "vs baseline as destination",
    ]
    slowest = [row[0] for row in rows(client, "?ordering=ratio_source")[:4]]
    assert set(slowest) == set(changed_site.SLOWED)
    assert order(client, "?ordering=-slower_destination")[0] == "UKI-SCOTGRID-GLASGOW"
    assert "/api/v1/sites/?ordering=-trouble" in look(client).links()


def test_it_says_as_of_when_and_whether_measurements_are_doubtful(client, measured):
    assert "The numbers of failing and slower links are not assessed yet." in look(client).words
    assessed_at()
    assert "as of 12:00 UTC." in look(client).words
    assert "doubtful" not in look(client).words
    stored_condition("slow")
    assert "Results have been doubtful since 20 Nov 06:00 UTC" in look(client).words


def test_a_link_within_a_site_fails_once(client, small_world):
    transfer(small_world.desy, small_world.scratch, None)
    stored_condition(source=small_world.desy, destination=small_world.scratch)
    lonely = Site.objects.create(name="Without-Links")
    Endpoint.objects.create(name="lonely", site=lonely, base_url="iperf3://alone.example:5201")
    Site.objects.create(name="Without-Endpoints")
    assert [row[:2] for row in rows(client)] == [
        ["DESY", "1"],
        ["Glasgow", "0"],
        ["RAL", "0"],
        ["Without-Links", "0"],
    ]
    assert heads(client)[:3] == ["site", "failing links ▼", "cloud"]


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", ["DESY", "Glasgow", "RAL"]),
        ("?ordering=-name", ["RAL", "Glasgow", "DESY"]),
        ("?ordering=-source", ["RAL", "Glasgow", "DESY"]),
        ("?ordering=source", ["Glasgow", "RAL", "DESY"]),
        ("?ordering=-destination", ["Glasgow", "RAL", "DESY"]),
        ("?ordering=success", ["DESY", "Glasgow", "RAL"]),
        ("?ordering=-endpoints", ["DESY", "Glasgow", "RAL"]),
        ("?ordering=tier", ["RAL", "DESY", "Glasgow"]),
        ("?ordering=wan", ["RAL", "DESY", "Glasgow"]),
    ],
)
def test_any_column_sorts_and_sites_without_a_value_come_last(client, measured, sort, names):
    assert order(client, sort) == names


def test_a_head_sorts_the_other_way_the_second_time(client, measured):
    page = look(client, "?window=24h&search=a&ordering=-source")
    assert page.part("th[aria-sort]")["aria-sort"] == "descending"
    assert "/sites/?window=24h&search=a&ordering=source" in page.links()
    assert "/sites/?window=24h&search=a&ordering=-destination" in page.links()
    assert "/sites/?window=24h&search=a&ordering=name" in page.links()
    assert "/sites/?window=24h&search=a" in page.links()  # what is wrong first, as it is anyway


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("glas", ["Glasgow"]),
        ("SCRATCHDISK", ["DESY"]),
        ("T2 uk", ["Glasgow"]),
        ("Tier 1", ["RAL"]),
        ("gb", ["Glasgow", "RAL"]),
    ],
)
def test_a_search_looks_at_all_that_is_known_of_a_site(client, measured, text, names):
    assert order(client, f"?search={text.replace(' ', '+')}") == names


def test_a_search_says_what_it_left_out_or_that_there_is_nothing(client, measured):
    assert "Showing 1 site (filtered from 3)." in look(client, "?search=glas").words
    page = look(client, "?window=24h&search=<i>nowhere")
    assert "No site matches “<i>nowhere”." in page
    assert "<i>" not in page.source
    assert "/sites/?window=24h" in page.links()
    form = look(client, "?window=24h&search=glas").part('form[aria-label="Sites"]')
    assert form.sent() == [("window", "24h"), ("search", "glas")]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ("?cloud=UK", ["Glasgow", "RAL"]),
        ("?cloud=!UK", ["DESY"]),
        ("?cloud=UK&tier=2", ["Glasgow"]),
        ("?label=SCRATCHDISK", ["DESY"]),
        ("?site=DESY&site=RAL", ["DESY", "RAL"]),
        ("?endpoint=RAL_DATADISK", ["RAL"]),
        ("?streams=4", ["DESY", "Glasgow", "RAL"]),
    ],
)
def test_filters_choose_sites(client, measured, filters, names):
    assert order(client, filters) == names
    assert look(client, filters).parts("a.chip")


def test_filters_choose_the_links_that_count(client, measured):
    at = heads(client, "?source_site=RAL").index("mean as source")
    shown = rows(client, "?source_site=RAL")
    assert [row[at] for row in shown] == ["–", "–", "10.0"]
    assert "No site matches these filters." in look(client, "?country=FR")


def test_a_site_of_which_nothing_is_known_but_its_name_is_listed(client, small_world):
    Endpoint.objects.filter(name="Glasgow_DATADISK").update(retired_at=NOW)
    Site.objects.filter(name="Glasgow").update(cloud="", country="", tier=0)
    assert order(client, "?search=Glasgow") == ["Glasgow retired"]


def test_a_site_whose_endpoints_are_retired_is_listed_as_history(client, measured):
    Endpoint.objects.filter(name="Glasgow_DATADISK").update(retired_at=NOW)
    Endpoint.objects.filter(name="DESY_SCRATCHDISK").update(retired_at=NOW, simulated=True)
    assert [row[:5] for row in facts(client)] == [
        ["DESY simulated", "DE", "2", "DE", "1"],
        ["Glasgow retired", "UK", "2", "GB", "0"],
        ["RAL", "UK", "1", "GB", "1"],
    ]
    assert rows(client)[1][heads(client).index("mean as source")] == "4.00"
    assert "DESY_DATADISK, DESY_SCRATCHDISK (retired)" in look(client).source
    assert "Simulated." in look(client)


def test_a_site_leads_to_its_page_with_the_same_window(client, measured):
    page = look(client, "?size=small&window=24h&cloud=UK&streams=4&ordering=-source")
    assert "/sites/RAL/?size=small&window=24h&streams=4" in page.links()
    call = "/api/v1/sites/?size=small&window=24h&cloud=UK&streams=4"
    assert page.links(f'a[href^="{call}"]')


def test_no_sites_yet_says_what_to_do(client, db):
    page = look(client)
    assert "No sites are registered yet." in page
    assert "/sites/add/" in page.links()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("?ordering=colour", "ordering “colour” is not known: use name, cloud"),
        ("?ordering=-", "ordering “-” is not known: use name, cloud"),
        ("?search=" + "x" * 201, "“search” must be at most 200 printable characters"),
        ("?window=2h", "window “2h” is not known"),
    ],
)
def test_a_bad_parameter_is_a_400_that_says_why(client, db, text, sentence):
    response = client.get(f"/sites/{text}")
    assert response.status_code == 400
    assert sentence in response.content.decode()


def test_the_number_of_queries_is_the_same_for_little_and_for_much(client, small_world):
    def queries() -> int:
        return len(statements(look, client))

    transfer(small_world.ral, small_world.glasgow, 5.0)
    queries()
    # One for the marks of conditions, one for those of the grid, one for when they were assessed.
    assert queries() == 11
    for number in range(30):
        site = Site.objects.create(name=f"site-{number}")
        transfer(small_world.ral, world.endpoint(f"place-{number}", site), 5.0, ago=number * HOUR)
    queries()
    assert queries() == 11
    sealing.seal(NOW)
    queries()
    assert queries() == 11


def test_an_unchanged_page_is_a_304(client, measured):
    etag = client.get("/sites/")["ETag"]
    assert client.get("/sites/", headers={"if-none-match": etag}).status_code == 304
    Site.objects.filter(name="RAL").update(cloud="GB")
    assert client.get("/sites/", headers={"if-none-match": etag}).status_code == 200


def test_a_column_with_nothing_in_it_is_left_out_unless_sites_are_sorted_by_it(client, measured):
    assert heads(client)[1:4] == ["cloud", "tier", "country"]
    assert "WAN in Gbit/s" in heads(client)
    Site.objects.update(wan_gbit_s=None)
    assert "WAN in Gbit/s" not in heads(client)
    assert "WAN in Gbit/s ▲" in heads(client, "?ordering=wan")


def test_simulated_is_said_once_where_all_are_and_of_each_where_only_some(client, measured):
    Endpoint.objects.update(simulated=True)
    assert "Simulated." in look(client)
    assert "simulated</small>" not in look(client).source
    Endpoint.objects.filter(site__name="RAL").update(simulated=False)
    assert look(client).source.count("simulated</small>") == 2
