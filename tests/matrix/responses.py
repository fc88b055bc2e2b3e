"""What pages and the API answer, read as tests want it; each must answer with 200."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.html import Page
from tests.matrix.written import written


def page(client: Client, address: str, *, follow: bool = False) -> Page:
    response = client.get(address, follow=follow)
    assert response.status_code == 200, response
    return Page(response.content.decode())


def html(client: Client, address: str, *, follow: bool = False) -> str:
    response = client.get(address, follow=follow)
    assert response.status_code == 200, response
    return written(response)


def answer(client: Client, address: str, *parameters: Any) -> Any:
    """Return a JSON answer; it must be strict JSON, without NaN."""
    response = client.get(address, *parameters)
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "application/json"
    return json.loads(response.content, parse_constant=pytest.fail)


def pages(client: Client, address: str) -> Iterator[Any]:
    """Return the pages of a list, from this one on, each asked for as it is wanted."""
    while address:
        listed = answer(client, address)
        yield listed
        address = listed["next"]


def csv_rows(client: Client, address: str) -> list[dict[str, str]]:
    response = client.get(address)
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(response.getvalue().decode(), newline="")))


def words(html: str) -> str:
    """Return the words of a page without its tags, a space between each two."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html)).strip()


def statements(do: Callable[..., object], *arguments: object, **more: object) -> list[str]:
    """Do something; return the statements that the database was sent meanwhile."""
    with CaptureQueriesContext(connection) as captured:
        do(*arguments, **more)
    return [query["sql"] for query in captured.captured_queries]
