"""docs/extending.md: each recipe is followed, with the code that stands there."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client, override_settings
from django.urls import clear_url_caches, include, path

from matrix.pages.subscriptions.subscription_form import SubscriptionForm
from sonar.alerting.channels import catalogue
from sonar.alerting.channels.base import Message, Target
from sonar.alerting.channels.web import Reply
from sonar.models import Subscription, Transfer
from tests.matrix import world
from tests.matrix.world import NOW
from tests.recipes import Tree

pytestmark = pytest.mark.django_db


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    return Tree(tmp_path, monkeypatch)


@pytest.fixture
def clouds(tree: Tree, tmp_path: Path) -> Iterator[None]:
    """Follow the recipes of a page and of a REST call."""
    tree.module("A page", "matrix/answers/clouds.py")
    page = tree.module("A page", "matrix/pages/clouds.py")
    tree.template("A page", "templates/clouds.html")
    call = tree.module("A REST call", "matrix/api/clouds.py")
    from sonar import urls

    routes = ModuleType("routes_of_recipes")
    calls = tree.route("A REST call", "matrix/api/urls.py", CloudsView=call.CloudsView)
    routes.urlpatterns = [  # type: ignore[attr-defined]
        *tree.route("A page", "matrix/urls.py", CloudsPage=page.CloudsPage),
        path("api/", include(calls)),
        *urls.urlpatterns,
    ]
    tree.patch.setitem(sys.modules, routes.__name__, routes)
    engine = settings.TEMPLATES[0] | {
        "DIRS": [tmp_path / "templates", *settings.TEMPLATES[0]["DIRS"]]
    }
    with override_settings(ROOT_URLCONF=routes.__name__, TEMPLATES=[engine]):
        clear_url_caches()
        yield
    clear_url_caches()


@pytest.mark.long
@pytest.mark.usefixtures("clouds")
def test_a_page_of_the_recipe_is_shown_and_ignores_what_it_does_not_know(client: Client) -> None:
    assert "No endpoints are registered yet" in client.get("/clouds/").content.decode()
    world.make()
    shown = client.get("/clouds/").content.decode()
    rows = re.findall(r'<th scope="row">(\w+)</th>\s*<td class="number">(\d+)</td>', shown)
    assert rows == [("DE", "2"), ("UK", "2")]
    answer = client.get("/clouds/?cloud=UK")
    assert answer.status_code == 200
    assert "There is no parameter “cloud”" in answer.content.decode()


@pytest.mark.usefixtures("clouds")
def test_a_page_of_the_recipe_is_for_readers_only_where_reading_is_not_public(
    client: Client,
) -> None:
    with override_settings(SONAR_PUBLIC_READ=False):
        assert client.get("/clouds/").status_code == 302
        assert client.get("/api/v1/clouds/").status_code == 401


@pytest.mark.usefixtures("clouds")
def test_a_call_of_the_recipe_answers_what_its_page_shows(client: Client) -> None:
    world.make()
    answer = client.get("/api/v1/clouds/")
    counts = {cloud["name"]: cloud["endpoints"] for cloud in answer.json()["clouds"]}
    assert counts == {"DE": 2, "UK": 2}
    known = client.get("/api/v1/clouds/", HTTP_IF_NONE_MATCH=answer["ETag"])
    assert known.status_code == 304
    refused = client.get("/api/v1/clouds/?cloud=UK")
    assert refused.status_code == 400
    assert "There is no parameter “cloud”" in refused.content.decode()


LINE = {
    "job": "https://fts.example.org/jobs/1",
    "src_se": "RAL_DATADISK",
    "dst_se": "DESY_DATADISK",
    "started": "2026-11-20T11:00:00Z",
    "duration_ms": 10_500,
    "filesize": 2_000_000_000,
    "reason": "",
}
FAILED = LINE | {"job": "https://fts.example.org/jobs/2", "reason": "Connection refused"}


@pytest.fixture
def imported(tree: Tree, tmp_path: Path) -> Callable[..., str]:
    """Follow the recipe of an importer; return what imports lines, and what it said."""
    world.make()
    tree.module("An importer", "sonar/records/service_log.py")
    command = tree.module("An importer", "sonar/management/commands/import_service_log.py")

    def run(*lines: dict[str, object]) -> str:
        path = tmp_path / "transfers.log"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        said = StringIO()
        call_command(command.Command(), str(path), stdout=said)
        return said.getvalue().removeprefix(f"{path}: ").strip()

    return run


@pytest.mark.usefixtures("at_noon")
def test_an_importer_of_the_recipe_stores_each_transfer_once_or_names_what_is_wrong(
    imported: Callable[..., str],
) -> None:
    with pytest.raises(CommandError, match="line 2: source 'NOWHERE' is not registered"):
        imported(LINE, FAILED | {"src_se": "NOWHERE"})
    assert not Transfer.objects.exists()
    assert imported(LINE, FAILED) == "2 accepted, 0 duplicates"
    assert imported(LINE) == "0 accepted, 1 duplicates"
    stored = Transfer.objects.order_by("state").values_list("state", "seconds", "bytes", "error")
    assert list(stored) == [
        ("done", 10.5, 2_000_000_000, ""),
        ("failed", 10.5, 2_000_000_000, "Connection refused"),
    ]


def test_a_channel_of_the_recipe_is_offered_and_sends(tree: Tree) -> None:
    module = tree.module("A channel", "sonar/alerting/channels/ntfy.py")
    (ntfy,) = tree.route("A channel", "sonar/alerting/channels/catalogue.py")
    tree.patch.setattr(catalogue, "CHANNELS", (*catalogue.CHANNELS, ntfy))
    posted: list[tuple[str, dict[str, object], Mapping[str, str]]] = []

    def post(url: str, body: bytes, headers: Mapping[str, str], *secrets: str) -> Reply:
        assert secrets == ("sonar-shift",)
        posted.append((url, json.loads(body), headers))
        return Reply(200, "published")

    tree.patch.setattr(module, "post", post)
    page = SubscriptionForm(Subscription(channel="ntfy"))
    assert page["channel-url"].help_text == "Example: https://ntfy.example.org"
    channel = catalogue.describe("ntfy")
    assert [*channel.problems({"url": "https://ntfy.example.org"})] == ["topic"]
    values = {"url": "https://ntfy.example.org", "topic": "sonar-shift"}
    assert channel.problems(values) == {}
    message = Message("an-id", NOW, "test", "This is a test", "Nothing is wrong.")
    target = Target("key", "shift", "", "https://s/subscriptions/", "https://s/", values)
    assert catalogue.load(channel.path).send(message, target) == "200 OK: published"
    note = {"topic": "sonar-shift", "title": "This is a test", "message": "Nothing is wrong."}
    note |= {"priority": 3, "click": "https://s/"}
    assert posted == [(values["url"], note, {"X-Sonar-Delivery": "an-id"})]
