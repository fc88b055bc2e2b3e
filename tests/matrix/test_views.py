"""What all pages have in common: who a page is made for, and where a wrong address leads."""

import pytest

pytestmark = pytest.mark.django_db


def test_a_page_is_made_anew_for_a_reader_with_another_site(client, small_world):
    etag = client.get("/")["ETag"]
    client.cookies["sonar_site"] = "RAL"
    assert client.get("/", headers={"if-none-match": etag}).status_code == 200


def test_pages_are_kept_by_their_reader_alone_whatever_the_cookie(client, small_world):
    client.cookies["sonar_site"] = 'a"b, W/"c'
    response = client.get("/")
    assert response.status_code == 200
    assert response["ETag"].count('"') == 2
    assert response["Cache-Control"] == "private, no-cache"
    assert "Cookie" in response["Vary"]
