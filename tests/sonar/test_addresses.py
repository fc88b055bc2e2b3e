"""Where base URLs lead: no two to the same place, none to an address that is no host's."""

from itertools import permutations
from urllib.parse import quote

import pytest
from django.core.exceptions import ValidationError
from django.forms import model_to_dict
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from sonar.alerting.channels.web import Outward
from sonar.credentials import kinds, rules
from sonar.models import Endpoint, Mesh, Site, SizeClass
from sonar.movers.catalogue import kept
from sonar.notation import addresses
from sonar.notation.addresses import DOTS_SENTENCE, HOST_SENTENCE, LETTERS_SENTENCE, overlap
from sonar.people.roles import Role
from tests.matrix.registry import caller, patch, post
from tests.sonar.test_load_registry import GOOD, errors, load

BASE = "https://storage.example.org:443/1"
SAME = (
    "https://storage.example.org/1",
    "https://storage.example.org/1/",
    "https://storage.example.org//1",
    "https://storage.example.org/%31",
    "https://STORAGE.Example.org/1",
    "https://storage.example.org./1",
    "davs://storage.example.org:443/1",
    "https://storage.example.org/1/2",
    "https://storage.example.org/1%2f2",
    "https://storage.example.org",
    "https://storage.example.org/",
)
OTHER = (
    "https://storage.example.org/12",
    "https://storage.example.org/2",
    "https://storage.example.org/A",
    "https://storage.example.org:8443/1",
    "http://storage.example.org/1",
    "root://storage.example.org/1",
    "https://storage2.example.org/1",
)
UNPRINTABLE = (
    *("\0", "\r\n", "\n", "\t", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\u00a0"),
    *("\u202e", "\u2066", "\u200e", "\u200b", "\ufeff", "\ud800"),
)
DOTTED = ("/1/../1", "/./1", "/1/..", "/%2e%2E/1", "/1/.%2e/2", "/..%2f1", "/%252e%252e/1")


def test_two_ways_to_write_one_place_overlap_in_both_directions():
    for url in SAME:
        assert "overlaps with that of A" in overlap(url, [("B", OTHER[3]), ("A", BASE)]), url
        assert "overlaps with that of A" in overlap(BASE, [("A", url)]), url


def test_other_places_do_not_overlap():
    for one, another in permutations((BASE, *OTHER), 2):
        assert overlap(one, [("A", another)]) == ""


def test_a_path_with_dots_is_refused():
    for path in DOTTED:
        assert addresses.problem(f"https://storage.example.org{path}") == DOTS_SENTENCE, path


@pytest.mark.parametrize("base", ["ftp://s.example", "root://s.example//data", "fake://s/data"])
def test_what_ends_a_line_or_is_not_seen_is_refused_however_often_it_is_encoded(base: str):
    for letters in UNPRINTABLE:
        once = quote(letters, errors="surrogatepass")
        for text in (letters, once, once.replace("%", "%25"), once.replace("%", "%252525")):
            assert addresses.problem(f"{base}/a{text}b") == LETTERS_SENTENCE, text


@pytest.mark.parametrize("text", ["%0d%0a", "%00", "%250A", "%E2%80%AE", "\n", "\0", "\x7f"])
def test_services_issuers_and_their_paths_hold_no_control_characters_either(text: str):
    url = f"https://issuer.example/{text}"
    of_credential = dict.fromkeys(kinds.SETTINGS, "") | {
        "issuer": url,
        "client_id": "sonar",
        "path_prefix": f"/{text}",
        "audience": "\n",
        "scope": "a\nb",
    }
    wrong = kinds.problems("client_credentials", of_credential)
    assert set(wrong) == {"issuer", "path_prefix", "audience", "scope"}
    assert set(rules.service_problems(kept("fts3"), url, None)) == {"service"}


@pytest.mark.parametrize("issuer", ["https://[x/", "https://[::1", "https://h:99999/"])
def test_an_issuer_that_is_no_url_is_a_sentence(issuer: str):
    values = dict.fromkeys(kinds.SETTINGS, "")
    wrong = kinds.problems("client_credentials", values | {"issuer": issuer})
    assert wrong["issuer"].startswith("An issuer must have the form https://host[:port]/path")


def test_what_cannot_be_decoded_is_refused_and_what_can_be_printed_is_fine():
    for path in ("/%FF", "/%C3x", "/%ED%A0%80", "/%" + "25" * 9 + "41", "/%" + "25" * 100_000):
        problem = addresses.problem(f"https://storage.example.org{path}")
        assert problem == LETTERS_SENTENCE, path[:40]
    for path in ("/a%20b", "/100%25/%", "/k%C3%B6ln/köln", "/%2541", "/a+b=c&d"):
        assert addresses.problem(f"https://storage.example.org{path}") == "", path


# Registered: by the API, a file, the models


@pytest.fixture
def root(db: None) -> Client:
    Site.objects.create(name="RAL")
    Endpoint.objects.create(name="KEPT", site=Site.objects.get(name="RAL"), base_url=BASE)
    return caller(Role.ADMINISTRATOR)


def body(base_url: str, name: str = "NEW") -> dict[str, str]:
    return {"name": name, "site": "RAL", "base_url": base_url}


@pytest.mark.long
def test_the_api_names_the_endpoint_that_has_the_place_and_not_its_url(root: Client):
    for url in SAME:
        response = post(root, "endpoints/", body(url))
        assert response.status_code == 409, url
        (sentence,) = response.json()["errors"]["base_url"]
        assert "The base URL overlaps with that of KEPT" in sentence
        assert "example" not in sentence
        assert Endpoint.objects.count() == 1


def test_the_api_takes_what_lies_beside_it(root: Client):
    for number, url in enumerate(OTHER):
        assert post(root, "endpoints/", body(url, f"N{number}")).status_code == 201


def test_the_api_and_the_admin_refuse_what_is_no_place(root: Client):
    kept = Endpoint.objects.get(name="KEPT")
    form = model_to_dict(kept, ["name", "site", "inbound_cap", "outbound_cap"])
    for url, sentence in (
        ("https://s.example.org/1/../2", DOTS_SENTENCE),
        ("https://0xa9fea9fe/1", HOST_SENTENCE),
        ("ftp://s.example.org/1%0d%0aDELE%20x", LETTERS_SENTENCE),
        ("root://s.example.org//1%2500", LETTERS_SENTENCE),
    ):
        response = post(root, "endpoints/", body(url))
        assert response.status_code == 400, url
        assert response.json()["errors"]["base_url"] == [sentence]
        change = reverse("admin:sonar_endpoint_change", args=[kept.id])
        page = root.post(change, form | {"base_url": url})
        assert escape(sentence) in page.content.decode(), url
        kept.refresh_from_db()
        assert (Endpoint.objects.count(), kept.base_url) == (1, BASE)


def test_a_retired_endpoint_keeps_its_place_as_its_files_may(root: Client):
    assert patch(root, "endpoints/KEPT/", {"retired": True}).status_code == 200
    assert post(root, "endpoints/", body(SAME[1])).status_code == 409


def test_what_was_registered_before_may_be_edited_and_only_not_moved_so(root: Client):
    """Neither rule asks for more than that nothing new breaks it."""
    site = Site.objects.get(name="RAL")
    odd = ("ODD", "ftp://odd.example/%0d%0a")
    for name, url in (
        ("kept", f"{BASE}/../x"),
        ("LINK", "https://[fe80::1]/"),
        ("UP", SAME[9]),
        odd,
    ):
        Endpoint.objects.create(name=name, site=site, base_url=url)
        response = patch(root, f"endpoints/{name}/", {"label": "DATADISK", "base_url": url})
        assert response.status_code == 200
        assert patch(root, f"endpoints/{name}/", {"base_url": SAME[2]}).status_code == 409


def test_a_name_that_only_its_case_tells_from_another_is_refused(root: Client):
    Mesh.objects.create(name="uk")
    for plural, new in {
        "sites": {"name": "ral"},
        "endpoints": body(OTHER[0], "Kept"),
        "meshes": {"name": "UK", "every": {"small": "1h"}},
        "size-classes": {"name": "LARGE", "from_bytes": 10**10, "test_bytes": 2 * 10**10},
    }.items():
        response = post(root, f"{plural}/", new)
        assert response.status_code == 409, plural
        (sentence,) = response.json()["errors"]["name"]
        assert sentence.startswith(f"The name “{new['name']}” differs only in case from the ")


def test_the_models_themselves_refuse_such_names_when_they_change(root: Client):
    for row, name in (
        (Site(name="ral"), "name"),
        (SizeClass(name="Small", from_bytes=5, test_bytes=5), "name"),
        (Mesh(name="x"), ""),
    ):
        if name:
            with pytest.raises(ValidationError, match="differs only in case"):
                row.full_clean(validate_constraints=False)
        else:
            row.full_clean()
    renamed = Site.objects.get(name="RAL")
    renamed.name = "Ral"
    renamed.full_clean()


# Registry files


def files(glasgow: str, ral: str, *, turned: bool = False) -> str:
    text = GOOD.replace("glasgow.example:1094/data", f"glasgow.example:1094/{glasgow}")
    text = text.replace("ral.example/data", f"glasgow.example:1094/{ral}")
    if not turned:
        return text
    head, _, rest = text.partition("endpoints:\n")
    ends, _, meshes = rest.partition("meshes:\n")
    first, second = ends.split("  - name: RAL_DATADISK")
    return f"{head}endpoints:\n  - name: RAL_DATADISK{second}{first}meshes:\n{meshes}"


@pytest.mark.django_db
@pytest.mark.parametrize("turned", [False, True])
def test_a_file_with_two_endpoints_in_one_place_is_refused_in_either_order(tmp_path, turned: bool):
    for glasgow, ral in (("data", "data/"), ("data", "data/ral"), ("data/x", "data")):
        said = errors(tmp_path, files(glasgow, ral, turned=turned))
        assert "base_url" in said
        assert "the two URLs are the same, or one is below the other" in said


@pytest.mark.django_db
@pytest.mark.parametrize("turned", [False, True])
def test_endpoints_of_a_file_may_change_places_or_move_where_another_leaves(tmp_path, turned: bool):
    load(tmp_path, files("a", "b"))
    for glasgow, ral in (("b", "a"), ("a/x", "c"), ("c/y", "a")):
        load(tmp_path, files(glasgow, ral, turned=turned))
        kept = dict(Endpoint.objects.values_list("name", "base_url"))
        assert kept["GLASGOW_DATADISK"] == f"https://glasgow.example:1094/{glasgow}"
        assert kept["RAL_DATADISK"] == f"davs://glasgow.example:1094/{ral}"
    assert "changed" not in load(tmp_path, files("c/y", "a"))


@pytest.mark.django_db
def test_a_file_is_judged_by_what_stands_only_in_the_database_too(tmp_path):
    load(tmp_path, files("a", "b"))
    more = (
        "endpoints:\n"
        "- {name: THIRD, site: RAL, base_url: 'https://glasgow.example:1094/b/c'}\n"
        "- {name: ral_datadisk, site: RAL, base_url: 'https://other.example/b'}\n"
        "- {name: FOURTH, site: RAL, base_url: 'https://169.254.169.254/b'}\n"
        "- {name: FIFTH, site: RAL, base_url: 'https://other.example/b/../c'}\n"
        "- {name: SIXTH, site: RAL, base_url: 'ftp://other.example/%0d%0a'}\n"
        '- {name: SEVENTH, site: RAL, base_url: "ftp://other.example/b\\n"}\n'
    )
    said = errors(tmp_path, more)
    assert "endpoints[0].base_url (line 2): The base URL overlaps with that of RAL_DATADISK" in said
    assert "endpoints[1].name (line 3): The name “ral_datadisk” differs only in case" in said
    assert f"endpoints[2].base_url (line 4): {HOST_SENTENCE}" in said
    assert f"endpoints[3].base_url (line 5): {DOTS_SENTENCE}" in said
    assert f"endpoints[4].base_url (line 6): {LETTERS_SENTENCE}" in said
    assert f"endpoints[5].base_url (line 7): {LETTERS_SENTENCE}" in said


# Each stands for an address of IPv4, or is of IPv6, that only those within a network reach.
INSIDE = [
    *("10.0.0.1", "10.1", "0x0a000001", "100.64.0.1", "169.254.169.254", "192.0.2.1", "0.0.0.0"),
    *("[64:ff9b::a00:1]", "[64:ff9b:1::a00:1]", "[64:ff9b:1:a00:1:100::]", "[2002:7f00:1::]"),
    *("[2002:a00:1::1]", "[::10.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:0:10.0.0.1]", "[fec0::1]"),
    *("[fc00::1]", "[fe80::1]", "[::1]", "[::]", "[ff02::1]", "[2001:0:a00:1::]", "[2001:db8::1]"),
    *("[2001:0:808:808::f5ff:fffe]", "[64:ff9b:1:a00:0:100:808:808]"),
]
OUTSIDE = [
    *("8.8.8.8", "[2606:4700::1]", "[64:ff9b::808:808]", "[2002:808:808::1]", "[::ffff:8.8.8.8]"),
    *("[64:ff9b:1::808:808]", "[::8.8.8.8]", "[::ffff:0:8.8.8.8]", "[2001:0:808:808::f7f7:f7f7]"),
    "se.example.org",
]


@pytest.mark.parametrize("host", [*INSIDE, *OUTSIDE])
def test_an_address_is_inside_however_it_is_written(host: str):
    assert addresses.is_inside(host) is (host in INSIDE)
    address = addresses.address_of(host)
    if address is not None:
        way = Outward(is_plain=False)
        assert way._is_allowed(str(address)) is addresses.is_public(address) is (host in OUTSIDE)
