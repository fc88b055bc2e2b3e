"""Finding sites, endpoints and links, and the page that lists them."""

import pytest

from matrix.answers.search import MOST_MATCHES, find
from sonar.models import Endpoint, Site
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.responses import statements
from tests.matrix.world import NOW

pytestmark = pytest.mark.django_db


def make_sites(*names: str) -> None:
    """Register sites, each with an endpoint: without one they are drafts."""
    made = Site.objects.bulk_create(Site(name=name) for name in names)
    world.endpoints((f"end-{site.pk}", site) for site in made)


def names(text: str) -> list[str]:
    return [one.name for one in find(text).matches]


def kinds(text: str) -> list[tuple[str, str]]:
    return [(one.kind, one.name) for one in find(text).matches]


def test_a_part_of_a_name_finds_sites_before_their_endpoints(small_world):
    assert kinds("glas") == [("site", "Glasgow"), ("endpoint", "Glasgow_DATADISK")]
    assert names("SCRATCH") == ["DESY_SCRATCHDISK"]


def test_words_of_a_site_find_it_before_the_links_between_such(small_world):
    cern = [Site.objects.create(name=f"CERN-{name}") for name in ("LAB-010", "GRID-034")]
    for site in cern:
        world.endpoint(f"{site.name}_DATADISK", site)
    assert kinds("cern 010")[:3] == [
        ("site", "CERN-LAB-010"),
        ("endpoint", "CERN-LAB-010_DATADISK"),
        ("link", "CERN-GRID-034_DATADISK → CERN-LAB-010_DATADISK"),
    ]


def test_sites_come_before_endpoints_that_begin_so(small_world):
    make_sites("T2-RAL_D")
    assert names("ral_d")[:2] == ["T2-RAL_D", "RAL_DATADISK"]


def test_the_same_name_comes_first_then_those_that_begin_so(small_world):
    make_sites("CERN-RAL", "RALPP", "ABERAL")
    expected = ["RAL", "RALPP", "ABERAL", "CERN-RAL"]
    assert [one.name for one in find("ral").matches if one.kind == "site"] == expected


@pytest.mark.parametrize(
    "text",
    [
        "RAL to Glasgow",
        "ral -> glasgow",
        "RAL→Glasgow",
        "RAL→ Glasgow",
        "RAL->Glasgow",
        "RAL => Glas",
        "RAL_DATADISK to Glasgow_DATADISK",
        "from RAL to Glasgow",
        "  RAL   TO   Glasgow ",
    ],
)
def test_two_names_with_a_direction_find_that_link_alone(small_world, text):
    (only,) = find(text).matches
    assert (only.kind, only.name) == ("link", "RAL_DATADISK → Glasgow_DATADISK")
    assert only.url == "/links/RAL_DATADISK/Glasgow_DATADISK/"
    assert only.about == "link from RAL to Glasgow"


def test_two_names_without_a_direction_find_both_the_one_typed_first(small_world):
    expected = ["Glasgow_DATADISK → RAL_DATADISK", "RAL_DATADISK → Glasgow_DATADISK"]
    assert names("Glasgow ral") == expected


def test_each_endpoint_of_a_site_has_its_link(small_world):
    expected = ["DESY_DATADISK → RAL_DATADISK", "DESY_SCRATCHDISK → RAL_DATADISK"]
    assert names("DESY to RAL") == expected
    assert ("link", "DESY_DATADISK → DESY_DATADISK") not in kinds("DESY to DESY")


def test_a_link_that_is_not_typed_to_its_end_finds_its_source(small_world):
    assert names("RAL ->") == names("RAL")


@pytest.mark.parametrize(
    "text", ["", "   ", "nowhere", "RAL to nowhere", "%", "_DATA%", "->", "to"]
)
def test_what_is_not_there_is_not_found(small_world, text):
    assert names(text) == []
    assert not find(text).more


def test_a_retired_endpoint_is_found_as_such(small_world):
    Endpoint.objects.filter(name="Glasgow_DATADISK").update(retired_at=NOW)
    _, endpoint = find("glasgow").matches
    assert endpoint.about == "retired endpoint of Glasgow"
    assert endpoint.url == "/?endpoint=Glasgow_DATADISK"


def test_no_more_than_twenty_are_listed_and_it_is_said_that_there_are_more(small_world):
    make_sites(*(f"many-{number:02d}" for number in range(MOST_MATCHES)))
    assert len(find("many").matches) == MOST_MATCHES
    assert not find("many").more
    make_sites("many-more")
    assert len(find("many").matches) == MOST_MATCHES
    assert find("many").more


def test_below_the_box_are_ten_at_most(client, small_world):
    make_sites(*(f"many-{number:02d}" for number in range(11)))
    short = Page(client.get("/search/?q=many", headers={"HX-Request": "1"}).content.decode())
    assert len(short.parts("#found-list a")) == 10
    assert "There are more matches" in short.words
    assert len(responses.page(client, "/search/?q=many").parts("#found-list a")) == 11


def test_a_search_asks_the_database_one_question_once_the_registry_is_known(small_world):
    for pinned in (3, 1, 1):
        assert len(statements(find, "RAL to Glasgow")) == pinned
        if pinned == 1:
            world.transfer(small_world.ral, small_world.glasgow, 5.0)


def test_the_page_lists_what_was_found_with_what_it_is(client, small_world):
    html = client.get("/search/?q=ral", headers={"HX-Request": "true"}).content.decode()
    links = Page(html).parts("#found-list a")
    assert [(link["href"], link["title"]) for link in links] == [
        ("/sites/RAL/", "RAL, Tier 1 site, cloud UK"),
        ("/?endpoint=RAL_DATADISK", "RAL_DATADISK, endpoint of RAL"),
    ]
    assert links[0].words == "RAL Tier 1 site, cloud UK"
    assert client.get("/?endpoint=RAL_DATADISK").status_code == 200


def test_one_result_is_not_gone_to_while_one_types(client, small_world):
    typed = client.get("/search/?q=ral+to+glasgow", headers={"HX-Request": "true"})
    assert typed.status_code == 200
    assert 'href="/links/RAL_DATADISK/Glasgow_DATADISK/"' in typed.content.decode()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ral", "/sites/RAL/"),
        ("glas", "/sites/Glasgow/"),
        ("desy", "/sites/DESY/"),
        ("desy_scratchdisk", "/?endpoint=DESY_SCRATCHDISK"),
        ("ral+to+glasgow", "/links/RAL_DATADISK/Glasgow_DATADISK/"),
        # Without a direction it is the link from the first to the second.
        ("glas+ral", "/links/Glasgow_DATADISK/RAL_DATADISK/"),
    ],
)
def test_one_result_is_gone_to_at_once(client, small_world, text, address):
    make_sites("DESY-Zeuthen")
    response = client.get(f"/search/?q={text}")
    assert (response.status_code, response["Location"]) == (302, address)


def test_several_sites_are_listed(client, small_world):
    make_sites("Glasgow-2")
    assert client.get("/search/?q=glas").status_code == 200
    assert client.get("/search/?q=DATADISK").status_code == 200
    # DESY has two endpoints: which of them is meant?
    assert client.get("/search/?q=desy+ral").status_code == 200


def test_nothing_found_is_said_in_the_list(client, small_world):
    html = client.get("/search/?q=<b>nowhere").content.decode()
    found = html.split('<ul id="found-list"')[1].split("</ul>")[0]
    assert "No site or endpoint has “&lt;b&gt;nowhere” in its name" in found
    assert "<a" not in found


def test_without_a_question_the_page_says_how_to_ask(client, db):
    assert "Type part of a name" in client.get("/search/").content.decode()
    assert client.get("/search/?q=++")["Location"] == "/search/"


@pytest.mark.parametrize("text", ["q=" + "x" * 201, "q=a%00b"])
def test_what_cannot_be_asked_is_a_400(client, small_world, text):
    assert client.get(f"/search/?{text}").status_code == 400
