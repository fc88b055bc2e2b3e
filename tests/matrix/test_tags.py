"""Free tags of sites and endpoints: what is chosen by them, and where they are written."""

import json
from io import StringIO
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from matrix.answers.search import find
from sonar.models import Endpoint, Site
from sonar.models.fields import MOST_TAGS, TAG_RULE
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.matrix import responses
from tests.matrix.registry import caller, get, made, patch, post
from tests.matrix.world import World, transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

# A filter as a URL has it, and what it means in SQL: s and d are the ends with their sites.
FILTERS = {
    "tag=atlas": "'atlas' = ANY(s.tags || ss.tags) OR 'atlas' = ANY(d.tags || ds.tags)",
    "tag=!atlas": "NOT 'atlas' = ANY(s.tags || ss.tags || d.tags || ds.tags)",
    "source_tag=atlas": "'atlas' = ANY(s.tags || ss.tags)",
    "source_tag=!tape": "NOT 'tape' = ANY(s.tags || ss.tags)",
    "destination_tag=tape&destination_tag=cms": "d.tags || ds.tags && '{tape,cms}'::varchar[]",
    "source_tag=atlas&destination_tag=tape": (
        "'atlas' = ANY(s.tags || ss.tags) AND 'tape' = ANY(d.tags || ds.tags)"
    ),
    "tag=nothing": "false",
}
SQL = """
    SELECT s.name, d.name FROM sonar_transfer t
    JOIN sonar_endpoint s ON s.id = t.source_id JOIN sonar_site ss ON ss.id = s.site_id
    JOIN sonar_endpoint d ON d.id = t.destination_id JOIN sonar_site ds ON ds.id = d.site_id
    WHERE {where}
"""


@pytest.fixture
def tagged(small_world: World) -> World:
    """RAL's site is of atlas, Glasgow's endpoint of atlas and cms, DESY's scratch disk is tape."""
    for row, tags in (
        (small_world.ral.site, ["atlas"]),
        (small_world.glasgow, ["atlas", "cms"]),
        (small_world.scratch, ["tape"]),
    ):
        row.tags = tags
        row.save()
    with transfers() as some:
        for number, (source, destination) in enumerate(permutations(small_world.endpoints, 2)):
            some.add(source, destination, 5.0 + number)
    return small_world


def in_sql(text: str) -> set[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(SQL.format(where=FILTERS[text]))
        return set(cursor.fetchall())


@pytest.mark.long
def test_matrix_rows_of_links_table_and_transfers_choose_as_sql_does(client, tagged, subtests):
    for text in FILTERS:
        with subtests.test(text):
            expected = in_sql(text)
            assert in_matrix(client, text) == expected
            rows = get(client, f"links/?window=24h&{text}")["links"]
            assert {(row["source"]["name"], row["destination"]["name"]) for row in rows} == expected
            page = responses.page(client, f"/table/?window=24h&{text}", follow=True)
            ends = permutations([one.name for one in tagged.endpoints], 2)
            shown = {link for link in ends if page.parts(f'a[href^="/links/{link[0]}/{link[1]}/"]')}
            assert shown == expected
            rows = get(client, f"transfers/?window=24h&{text}")["transfers"]
            assert {(row["source"], row["destination"]) for row in rows} == expected


def in_matrix(client: Client, text: str) -> set[tuple[str, str]]:
    answer = get(client, f"matrix/?window=24h&{text}")
    ends = [[group["name"] for group in answer[side]] for side in ("sources", "destinations")]
    return {
        (source, destination)
        for source, row in zip(ends[0], answer["cells"]["ok"], strict=True)
        for destination, ok in zip(ends[1], row, strict=True)
        if ok
    }


def test_the_page_says_the_filter_and_offers_it(client, tagged):
    page = client.get("/?tag=!tape&source_tag=atlas", follow=True).content.decode()
    assert "only from tag atlas" in page
    assert "not from or to tag tape" in page
    assert '<option value="tag">tag</option>' in page
    known = page.partition('id="known-tag"')[2].partition("</datalist>")[0]
    assert known.count("<option") == 3
    added = client.get("/?filter_on=tag&filter_end=destination&filter_value=cms")
    assert added["Location"] == "/?destination_tag=cms"


def test_tags_make_no_rows(client):
    answer = client.get("/api/v1/matrix/?rows=tag")
    assert answer.status_code == 400
    assert answer.json()["errors"] == {
        "rows": ["rows “tag” is not known: use endpoint, site, cloud, tier or country."]
    }


def test_sites_are_chosen_and_found_by_their_tags_and_those_of_their_endpoints(client, tagged):
    def names(path: str) -> list[str]:
        return [one["name"] for one in get(client, path)["sites"]]

    assert names("sites/?tag=atlas") == ["Glasgow", "RAL"]
    assert names("sites/?tag=!atlas") == ["DESY"]
    assert names("sites/?tag=tape") == ["DESY"]
    assert names("sites/?search=cms") == ["Glasgow"]
    assert "/sites/DESY/" in client.get("/sites/?tag=tape").content.decode()


def test_the_search_finds_by_tag_and_says_so(tagged):
    found = {(one.kind, one.name): one.about for one in find("atlas").matches}
    assert found == {
        ("site", "RAL"): "Tier 1 site, cloud UK, tags atlas",
        ("endpoint", "Glasgow_DATADISK"): "endpoint of Glasgow, tags atlas, cms",
        ("endpoint", "RAL_DATADISK"): "endpoint of RAL, tags atlas",
    }
    (link,) = find("cms to tape").matches
    assert link.name == "Glasgow_DATADISK → DESY_SCRATCHDISK"


def test_a_table_is_searched_narrowed_and_ordered_by_tags(client, tagged):
    rows = get(client, "links/?window=24h&source.tags.has=cm&ordering=-destination.tags")["links"]
    assert {row["source"]["name"] for row in rows} == {"Glasgow_DATADISK"}
    assert [row["destination"]["tags"] for row in rows] == [["tape"], ["atlas"], []]
    assert get(client, "links/?window=24h&search=tape")["found"] == 6
    text = client.get("/api/v1/links/?window=24h&format=csv&search=cms").getvalue().decode()
    assert "source.tags" in text.splitlines()[0]
    assert "atlas cms" in text


@pytest.mark.parametrize(
    "path", ["/", "/table/", "/sites/", "/api/v1/matrix/", "/api/v1/links/", "/api/v1/sites/"]
)
@pytest.mark.parametrize(("kind", "name"), [(Site, "DESY"), (Endpoint, "DESY_DATADISK")])
def test_what_pages_answer_has_another_version_once_tags_change(
    client, tagged, path: str, kind: type[Site | Endpoint], name: str
):
    address = f"{path}?window=24h&tag=atlas"
    first = client.get(address)
    kind.objects.filter(name=name).update(tags=["atlas"])
    again = client.get(address, headers={"if-none-match": first["ETag"]})
    assert again.status_code == 200
    assert again["ETag"] != first["ETag"]
    assert "DESY" in again.getvalue().decode()


@pytest.fixture
def root(small_world: World) -> Client:
    return caller(Role.OPERATOR)


@pytest.mark.parametrize(("plural", "name"), [("sites", "Lancaster"), ("endpoints", "RAL_TAPE")])
def test_tags_are_written_and_read_in_order_and_each_once(root, plural: str, name: str):
    assert made(root, plural, tags=["tape", "atlas", "tape"])["tags"] == ["atlas", "tape"]
    assert patch(root, f"{plural}/{name}/", {"tags": ["a:b_c.d-E"]}).json()["tags"] == ["a:b_c.d-E"]
    assert patch(root, f"{plural}/{name}/", {"tags": []}).json()["tags"] == []
    assert made(root, plural, **other(plural))["tags"] == []


def other(plural: str) -> dict[str, str]:
    more = {"endpoints": {"base_url": "davs://other.example.org/data"}}
    return {"name": "Other", **more.get(plural, {})}


def test_the_same_tags_in_another_order_change_nothing(root, tagged):
    version = get(root, "matrix/?window=24h")["version"]
    patch(root, "endpoints/Glasgow_DATADISK/", {"tags": ["cms", "atlas"]})
    assert get(root, "matrix/?window=24h")["version"] == version


def test_endpoints_are_listed_by_tag_and_with_tags(root, tagged):
    rows = get(root, "endpoints/?tag=atlas")["endpoints"]
    assert [(row["name"], row["tags"]) for row in rows] == [
        ("Glasgow_DATADISK", ["atlas", "cms"]),
        ("RAL_DATADISK", []),
    ]
    assert ",False,atlas cms," in root.get("/api/v1/endpoints/?format=csv").content.decode()
    assert get(root, "sites/RAL/")["site"]["tags"] == ["atlas"]
    assert ",atlas," in root.get("/api/v1/sites/?format=csv").content.decode()


BAD_TAGS: list[Any] = [
    ["two words"],
    [""],
    ["ä"],
    ["x" * 41],
    ["line\n"],
    ["a", 7],
    "atlas",
    None,
    [f"tag{number}" for number in range(MOST_TAGS + 1)],
]


@pytest.mark.parametrize(
    ("method", "path"),
    [("post", "sites/"), ("patch", "sites/RAL/"), ("patch", "endpoints/RAL_DATADISK/")],
)
def test_a_bad_tag_names_field_and_rule_and_changes_nothing(
    root, tagged, subtests, method: str, path: str
):
    before = [list(kind.objects.order_by("pk").values()) for kind in (Site, Endpoint)]
    for tags in BAD_TAGS:
        with subtests.test(tags=tags):
            body = {"name": "New", "tags": tags} if method == "post" else {"tags": tags}
            answer = {"post": post, "patch": patch}[method](root, path, body)
            assert answer.status_code == 400
            (sentence,) = answer.json()["errors"]["tags"]
            assert sentence.startswith("tags ")
            assert f"is not a list of at most {MOST_TAGS} tags, each with {TAG_RULE}" in sentence
    assert [list(kind.objects.order_by("pk").values()) for kind in (Site, Endpoint)] == before


FILE = """\
sites:
  - {name: RAL, tags: [tape, atlas, tape]}
endpoints:
  - {name: RAL_TAPE, site: RAL, base_url: davs://tape.example/data, tags: ["a:b"]}
"""


def load(tmp_path: Path, text: str) -> str:
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    out = StringIO()
    call_command("load_registry", str(path), stdout=out)
    return out.getvalue()


def test_a_registry_file_writes_tags_and_an_empty_list_removes_them(tmp_path):
    load(tmp_path, FILE)
    assert Site.objects.get(name="RAL").tags == ["atlas", "tape"]
    assert Endpoint.objects.get(name="RAL_TAPE").tags == ["a:b"]
    assert "as before: 1 site" in load(tmp_path, FILE)
    without = FILE.replace("tags: [tape, atlas, tape]", "tags: []").replace('["a:b"]', "[]")
    assert "changed: site RAL: tags atlas tape -> none" in load(tmp_path, without)
    assert Site.objects.get(name="RAL").tags == Endpoint.objects.get(name="RAL_TAPE").tags == []


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        (
            "[ok, two words]",
            f"sites[0].tags (line 2): “two words” is not a valid tag: use {TAG_RULE}.",
        ),
        (["ok", "line\n"], f"is not a valid tag: use {TAG_RULE}."),
        (["ok", ""], f"sites[0].tags (line 2): “” is not a valid tag: use {TAG_RULE}."),
        (["x" * 41], f"x” is not a valid tag: use {TAG_RULE}."),
        ("atlas", "sites[0].tags (line 2): Input should be a valid list"),
        (
            [f"t{number}" for number in range(MOST_TAGS + 1)],
            "sites[0].tags (line 2): At most 20 tags are allowed (got 21).",
        ),
    ],
)
def test_a_bad_tag_of_a_file_names_its_line_and_changes_nothing(tmp_path, tags: object, said: str):
    text = tags if isinstance(tags, str) else json.dumps(tags)
    with pytest.raises(CommandError, match="nothing was changed") as caught:
        load(tmp_path, FILE.replace("[tape, atlas, tape]", text))
    assert said in str(caught.value)
    assert not Site.objects.exists()


def test_the_admin_takes_tags_between_commas():
    admin = logged_in(account(Role.ADMINISTRATOR))
    body = {"name": "RAL", "tier": "1", "tags": "tape, atlas,tape"}
    assert admin.post(reverse("admin:sonar_site_add"), body).status_code == 302
    assert Site.objects.get().tags == ["atlas", "tape"]
    answer = admin.post(reverse("admin:sonar_site_add"), body | {"name": "X", "tags": "a b"})
    assert f"“a b” is not a valid tag: use {TAG_RULE}." in answer.content.decode()
    assert Site.objects.count() == 1
