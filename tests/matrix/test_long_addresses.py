"""Addresses as long as they may be: what is answered is as long as that, and no more.

Links of a page have its own address in them, and an error may name all that is allowed.
"""

from collections.abc import Iterable
from urllib.parse import quote

import pytest
from django.test import Client

from matrix.answers.table import column_filters
from matrix.query.forms import MOST_FILTERS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("small_world")]

# Of a request line, without the method, the path and the version.
LONGEST_ADDRESS = 4000
MOST_BYTES = 600_000
FILTERED = (
    *("/", "/table/", "/sites/", "/events/", "/causes/", "/?wall=1"),
    *("/api/v1/matrix/", "/api/v1/links/", "/api/v1/transfers/"),
    *("/api/v1/events/", "/api/v1/causes/", "/api/v1/sites/"),
)
OTHERS = (
    *("/operations/", "/search/", "/sites/RAL/", "/links/RAL_DATADISK/DESY_DATADISK/"),
    *("/api/v1/status/", "/api/v1/probes/", "/api/v1/endpoints/", "/api/v1/network/"),
    "/api/v1/sites/RAL/",
)


def filled(parts: Iterable[str]) -> str:
    """Return as many parameters as have room."""
    text = ""
    for part in parts:
        if len(text) + len(part) >= LONGEST_ADDRESS:
            break
        text += f"&{part}"
    return text.removeprefix("&")


NUMBERS = range(1000)
COLUMNS = [f"{size}.{name}" for size in ("small", "large") for name in column_filters.NUMBERS]
LONG = {
    "few long tags": filled(f"tag={quote('&' * 18)}{number}" for number in range(MOST_FILTERS)),
    "tags of the other side": filled(f"compare.tag={'x' * 60}{number}" for number in range(50)),
    "conditions": filled(f"{column}.min=1" for column in COLUMNS),
    "no parameters": filled(f"u{number}=1" for number in NUMBERS),
    "one again and again": filled("only=failing" for _ in NUMBERS),
    "a long text": f"search={'x' * LONGEST_ADDRESS}",
    "views": filled(f"views={quote('tag=' + 'x' * 70)}" for _ in NUMBERS),
}


def asked(client: Client, address: str, text: str) -> tuple[int, bytes]:
    response = client.get(f"{address}{'&' if '?' in address else '?'}{text}", follow=True)
    said = b"".join(response.streaming_content) if response.streaming else response.content
    return response.status_code, said


@pytest.mark.parametrize("address", FILTERED)
def test_more_filters_than_a_question_may_have_are_refused_everywhere(client, address):
    status, said = asked(client, address, filled(f"tag=a{number}" for number in range(260)))
    assert status == 400
    assert (
        "“tag” has 260 values, which makes 260 filters: a query can have at most 50"
        in said.decode()
    )
    assert len(said) < 50_000


@pytest.mark.parametrize("address", [*FILTERED, *OTHERS])
def test_no_address_makes_an_answer_of_megabytes(client, address):
    for shape, text in LONG.items():
        status, said = asked(client, address, text)
        assert status in (200, 400), shape
        assert len(said) < MOST_BYTES, shape
