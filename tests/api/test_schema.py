"""The description of the API: whole, true to the code, and fit for other programs."""

import json
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import jsonschema
import pytest
from django.conf import settings
from django.core.management import call_command
from django.urls import get_resolver
from drf_spectacular.plumbing import ComponentRegistry
from pytest_django import DjangoDbBlocker

from matrix.answers.table import table_query
from matrix.api import about
from matrix.api.schema import schemas
from matrix.api.schema.operation import stored_examples
from matrix.query.comparison import OF_FILTERS
from sonar.models import SizeClass
from tests.api import scene
from tests.scenes import standing
from tests.words import length, sentences

pytestmark = pytest.mark.django_db
Json = dict[str, Any]
BASE = "/api/v1/"
# Of the table's page, which links/ knows to say what there is instead.
NOT_FOR_SCRIPTS = {"page", "per_page", "constant"}
# A page for people.
NO_CALLS = {"/api/v1/docs/"}


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[scene.Scene]:
    with standing(django_db_blocker, scene.make, now=None) as made:
        yield made


@pytest.fixture(scope="module")
def schema(made: scene.Scene, django_db_blocker: DjangoDbBlocker) -> Json:
    about.document.cache_clear()
    with django_db_blocker.unblock():
        return json.loads(about.document(about.sizes()))


def operations(schema: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def names(operation: Json, where: str = "query") -> set[str]:
    return {one["name"] for one in operation.get("parameters", []) if one["in"] == where}


@pytest.mark.long
def test_drf_spectacular_makes_it_without_a_warning():
    out = StringIO()
    words = ("--validate", "--fail-on-warn", "--format=openapi-json")  # YAML takes much longer
    call_command("spectacular", *words, stdout=out)
    assert json.loads(out.getvalue())["openapi"] == "3.1.1"


def test_it_is_answered_as_it_is_made(client, schema):
    assert client.get(f"{BASE}schema/").json() == schema


def routes() -> set[tuple[str, str]]:
    """Name the path and methods of every route below /api/v1/, as the schema does."""
    found = set()
    for route in get_resolver("matrix.api.urls").url_patterns:
        path = "/api/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(route.pattern))
        if path.startswith(BASE) and path not in NO_CALLS:
            methods = route.callback.cls().allowed_methods
            found |= {(path, method) for method in methods if method != "OPTIONS"}
    return found


def test_every_route_and_method_is_in_it(schema):
    assert routes() == {(path, method) for path, method, _ in operations(schema)}


def scopes() -> dict[tuple[str, str], str]:
    """Read from the docs which scope each method of each call needs."""
    found = {}
    for line in (settings.PROJECT_DIR / "docs" / "routes.md").read_text().splitlines():
        if line.startswith(f"| `{BASE}"):
            route, methods, *_, scope, _ = (cell.strip() for cell in line[1:].split("|"))
            path = re.sub(r"<\w+:(\w+)>", r"{\1}", route.strip("`"))
            found |= {(path, method): scope for method in methods.split(", ")}
    return found


def test_every_operation_says_what_it_does_and_which_scope_it_needs(schema):
    ids = [operation["operationId"] for _, _, operation in operations(schema)]
    assert len(set(ids)) == len(ids)
    documented = scopes()
    for path, method, operation in operations(schema):
        assert operation["summary"], (path, method)
        assert len(operation["tags"]) == 1
        token = {"token": [documented[path, method]]}
        anyone = [{}] if method == "GET" else []
        assert operation["security"] == [token, {"session": []}, *anyone], (path, method)


def test_every_operation_has_the_errors_that_it_can_answer(schema):
    for path, method, operation in operations(schema):
        statuses = {400, 401, 403, 414, 429, 431, 503}
        statuses |= {411, 413, 415} if "requestBody" in operation else set()
        statuses |= {404} if "{" in path else set()
        assert statuses <= set(map(int, operation["responses"])), (path, method)
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                content = response["content"]["application/json"]
                assert content["schema"] == {"$ref": "#/components/schemas/Error"}
                assert ("Retry-After" in response.get("headers", {})) == (status in ("429", "503"))


def contents(operation: Json) -> Iterator[Json]:
    """Yield what is sent and answered, by media type."""
    for response in (*operation["responses"].values(), operation.get("requestBody", {})):
        yield from response.get("content", {}).values()


def test_every_body_and_answer_has_an_example_that_fits_and_no_other_is_stored(schema):
    for path, method, operation in operations(schema):
        for content in contents(operation):
            assert content["examples"], (path, method)
            for example in content["examples"].values():
                assert example["value"], (path, method)
                check(example["value"], content["schema"], schema)
    ids = {operation["operationId"] for _, _, operation in operations(schema)}
    assert set(stored_examples()) <= ids


def check(value: object, shape: Json, schema: Json) -> None:
    kind = jsonschema.Draft202012Validator
    whole = kind(schema, format_checker=kind.FORMAT_CHECKER)
    whole.evolve(schema=shape).validate(value)


def refusal(path: str, account: str) -> int:
    """Return the status with which an account is refused; 0 if it may read this."""
    if account == "anonymous" and ("/history/" in path or "/subscriptions/" in path):
        return 401
    return 403 if account == "site-admin" and "/subscriptions/" in path else 0


@pytest.mark.parametrize("account", ["anonymous", "site-admin", "administrator"])
def test_every_call_that_reads_answers_as_it_is_described(client, schema, made, account: str):
    headers = (
        {"Authorization": f"Token {made.tokens.get(account)}"} if account in made.tokens else {}
    )
    for path, method, operation in operations(schema):
        if method == "GET":
            of_link = any(call in path for call in ("series", "diagnosis", "inside"))
            needed = "?source=RAL_DATADISK&destination=DESY_DATADISK" if of_link else ""
            if path.endswith("/cost/"):
                needed = "?mesh=everything"
            answer = client.get(made.address(path) + needed, headers=headers)
            if refused := refusal(path, account):
                assert answer.status_code == refused
                continue
            assert answer.status_code == 200, (path, answer.content)
            content = operation["responses"]["200"]["content"]["application/json"]
            check(answer.json(), content["schema"], schema)


def test_the_example_of_a_table_has_the_columns_of_the_answer(client, schema, made):
    token = {"Authorization": f"Token {made.tokens['administrator']}"}
    for path, method, operation in operations(schema):
        content = operation["responses"].get("200", {}).get("content", {})
        if method != "GET" or "text/csv" not in content:
            continue
        (example,) = content["text/csv"]["examples"].values()
        header = example["value"].partition("\n")[0]
        of_link = "?source=RAL_DATADISK&destination=DESY_DATADISK&" if "series" in path else "?"
        answer = client.get(f"{made.address(path)}{of_link}format=csv", headers=token)
        columns = b"".join(answer).decode().partition("\n")[0]
        if "..." not in header:  # names of machines are not for all who read
            of_all = columns.removesuffix(",worker").removesuffix(",data_server")
            assert header == of_all, path


def test_every_parameter_is_described_with_what_is_allowed(schema):
    for path, method, operation in operations(schema):
        for one in operation.get("parameters", []):
            assert one["description"], (path, method, one["name"])
            assert one["schema"]["type"]
            # A client that is made of the schema must know the classes of tomorrow as well.
            assert not any("large" in value for value in one["schema"].get("enum", []))
            free = one["schema"]["type"] == "string" and "enum" not in one["schema"]
            assert one["in"] != "query" or not free or one["schema"]["examples"][0] is not None
            # Times in addresses may be any ISO 8601, as days and weeks: `date-time` is narrower.
            assert one["in"] != "query" or "format" not in one["schema"], (path, one["name"])


def test_every_call_has_a_description_that_says_what_it_answers(schema):
    for path, method, operation in operations(schema):
        assert operation["summary"][0].isupper(), (path, method)
        assert not operation["summary"].endswith("."), (path, method)
        assert operation["tags"] == ["registry"] or operation["description"], (path, method)


def test_every_field_of_an_answer_is_described(schema):
    for name, shape in schema["components"]["schemas"].items():
        if name.startswith("New") or name.endswith("Change"):
            continue
        for field, of in shape.get("properties", {}).items():
            text = of.get("description", "")
            assert text, (name, field)
            assert all(length(sentence) <= 20 for sentence in sentences(text)), (name, field)


def test_every_description_of_a_field_is_of_an_answer(schema):
    parts = {"Queries", "OtherLinks", "BucketCounts", "ComparedRates", "NoteStart", "SiteSides"}
    names = {*schema["components"]["schemas"], *parts, "PlannedWays"}
    assert set(schemas.field_descriptions()) <= names


def test_the_parameters_are_those_that_the_call_knows(client, schema, made):
    """An unknown parameter is refused, and the sentence names all that there are."""
    token = {"Authorization": f"Token {made.tokens['administrator']}"}
    for path, method, operation in operations(schema):
        if method != "GET":
            continue
        answer = client.get(made.address(path) + "?nonsense=1", headers=token)
        assert answer.status_code == 400, (path, answer.content)
        sentence = answer.json()["errors"]["nonsense"][0]
        known = re.fullmatch(r"There is no parameter “nonsense”: use (.*)\.", sentence)
        assert known, sentence
        listed = set(re.split(r", | or ", known[1]))
        if "compare.<filter>" in listed:
            listed = listed - {"compare.<filter>"} | set(OF_FILTERS)
        assert listed - NOT_FOR_SCRIPTS == names(operation), path


def test_a_new_size_class_is_in_it(client):
    client.get(f"{BASE}schema/")
    SizeClass.objects.create(name="huge", from_bytes=10**12, test_bytes=10**12)
    links = client.get(f"{BASE}schema/").json()["paths"][f"{BASE}links/"]["get"]
    by_name = {one["name"]: one["schema"] for one in links["parameters"]}
    assert by_name["size"]["examples"] == ["small", "medium", "large", "huge"]
    assert "-huge.mean_mb_s" in by_name["ordering"]["examples"]
    assert {"huge.age.max", "huge.mean_mb_s.min"} <= by_name.keys()


def test_an_ordering_of_links_is_described_as_it_is_checked(schema):
    by_name = {
        one["name"]: one["schema"] for one in schema["paths"][f"{BASE}links/"]["get"]["parameters"]
    }
    pattern = re.compile(by_name["ordering"]["pattern"])
    for column in table_query.orderings(["small", "a.b"], "a.b"):
        assert pattern.search(column), column
        assert pattern.search(f"-{column}"), column
    for column in ("", "-", "small", "small.nothing", "source.nothing", "large.every"):
        assert not pattern.search(column), column


def test_the_index_names_every_call_and_where_it_is(client, schema):
    index = client.get(BASE).json()
    calls = index["calls"]
    here = "http://testserver"
    assert index["docs"] == f"{here}{BASE}docs/"
    told = {(one["address"], method) for one in calls for method in one["methods"]}
    assert told == {(f"{here}{path}", method) for path, method, _ in operations(schema)}
    assert [one["address"] for one in calls if one["name"] == "matrix"] == [f"{here}{BASE}matrix/"]


@pytest.mark.parametrize(
    ("query", "accept", "is_led"),
    [
        ("", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("?format=json", "text/html,*/*;q=0.8", False),
        ("", "*/*", False),
        ("", "application/json, text/html;q=0.5", False),
    ],
)
def test_a_browser_is_led_from_the_index_to_its_page(client, query: str, accept: str, is_led: bool):
    response = client.get(BASE + query, headers={"Accept": accept})
    assert response.status_code == (302 if is_led else 200)
    assert response.headers.get("Location") == (f"{BASE}docs/" if is_led else None)
    assert "Accept" in response["Vary"]


def test_the_page_of_the_docs_lists_every_call(schema):
    page = (settings.PROJECT_DIR / "docs" / "api.md").read_text()
    rows = re.findall(r"^\| `(/api/\S*)` \| ([A-Z, ]+) \|", page, re.MULTILINE)
    listed = {(path, method) for path, methods in rows for method in methods.split(", ")}
    assert listed == {(path, method) for path, method, _ in operations(schema)}


def test_two_shapes_cannot_have_one_name():
    class Error(schemas.Answer):
        other: int

    made = schemas.Shapes(ComponentRegistry())
    assert made.of(schemas.Error, "response") == made.of(schemas.Error, "response")
    with pytest.raises(ValueError, match="Two schemas of the API are called Error"):
        made.of(Error, "response")
