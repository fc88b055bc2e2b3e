"""What all pages have in common: who a page is made for, and where a wrong address leads."""

import pytest
from django.test import Client

from tests.matrix.world import World

pytestmark = pytest.mark.django_db


def test_a_page_is_made_anew_for_a_reader_with_another_site(
    client: Client, small_world: World
) -> None:
    etag = client.get("/")["ETag"]
    client.cookies["sonar_site"] = "RAL"
    assert client.get("/", headers={"if-none-match": etag}).status_code == 200


def test_a_strange_cookie_makes_no_strange_header(client: Client, small_world: World) -> None:
    client.cookies["sonar_site"] = 'a"b, W/"c'
    response = client.get("/")
    assert response.status_code == 200
    assert response["ETag"].count('"') == 2


def test_pages_are_kept_by_their_reader_alone(client: Client, small_world: World) -> None:
    response = client.get("/")
    assert response["Cache-Control"] == "private, no-cache"
    assert "Cookie" in response["Vary"]
