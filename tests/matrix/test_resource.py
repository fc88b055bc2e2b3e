"""A resource of the registry is one description: a toy has all its calls from it."""

from typing import Annotated

import pytest
from django.test import Client
from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator

import sonar.urls
from matrix.api.registry.resource import CallText, Resource, of_words
from matrix.api.registry.values import field, own_name, record_of
from matrix.api.registry.views import routes
from matrix.api.schema.schemas import Body
from sonar.models import Credential
from sonar.people.roles import Role
from tests.accounts import account, logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


class NewToy(Body):
    """A toy to add."""

    name: Annotated[str, own_name("toy")]
    hosts: Annotated[
        list[str], field("a list of names of hosts", "Hosts of the toy.", min_length=1)
    ]


class Toys(Resource[Credential]):
    model = Credential
    new = NewToy
    answer = record_of(NewToy, "A toy.")
    parameters = (of_words("host", "Return only toys for this host.", "a.example.org", "hosts__0"),)
    calls = {
        "list": CallText("List toys", "Returns all toys, sorted by name."),
        "add": CallText("Add a toy"),
        "show": CallText("Get a toy"),
        "change": CallText("Change a toy"),
        "remove": CallText("Delete a toy"),
    }


urlpatterns = [path("api/", include(routes(Toys()))), *sonar.urls.urlpatterns]


@pytest.fixture
def root(settings) -> Client:
    settings.ROOT_URLCONF = __name__
    return logged_in(account(Role.ADMINISTRATOR))


def test_its_rows_are_added_listed_page_by_page_changed_and_removed(root):
    toys, as_json = "/api/v1/credentials/", "application/json"
    for name in ("kite", "ball"):
        answer = root.post(toys, {"name": name, "hosts": ["a.example.org"]}, as_json)
        assert answer.status_code == 201
        assert answer.headers["Location"].endswith(f"{toys}{name}/")
    page = root.get(f"{toys}?page_size=1&host=a.example.org").json()
    assert page["credentials"] == [{"name": "ball", "hosts": ["a.example.org"]}]
    assert [one["name"] for one in root.get(page["next"]).json()["credentials"]] == ["kite"]
    csv = root.get(f"{toys}?format=csv").content
    assert csv == b"name,hosts\nball,a.example.org\nkite,a.example.org\n"
    shown = root.get(f"{toys}ball/")
    assert root.get(f"{toys}ball/", headers={"If-None-Match": shown["ETag"]}).status_code == 304
    changed = root.patch(f"{toys}ball/", {"hosts": ["b.example.org"]}, as_json)
    assert changed.json() == {"name": "ball", "hosts": ["b.example.org"]}
    assert root.patch(f"{toys}ball/", {"colour": "red"}, as_json).json()["errors"] == {
        "colour": ["There is no field “colour”: use name or hosts."]
    }
    assert root.delete(f"{toys}ball/").status_code == 204
    assert root.get(f"{toys}ball/").status_code == 404
    assert Client().post(toys, {"name": "x"}, as_json).status_code == 401


def test_its_calls_are_in_the_schema(root):
    schema = SchemaGenerator().get_schema(request=None, public=True)
    every, one = "/api/v1/credentials/", "/api/v1/credentials/{name}/"
    assert set(schema["paths"][every]) == {"get", "post"}
    assert set(schema["paths"][one]) == {"get", "patch", "delete"}
    assert {"NewToy", "ToyRecord", "CredentialChange"} <= set(schema["components"]["schemas"])
    parameters = schema["paths"][every]["get"]["parameters"]
    asked = [parameter["name"] for parameter in parameters if parameter["in"] == "query"]
    assert asked == ["host", "page_size", "cursor", "format"]
