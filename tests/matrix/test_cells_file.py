"""GET /cells/: the numbers behind the picture, as the browser reads them."""

import gzip
import json
import struct
from itertools import product
from typing import Any

import numpy as np
import pytest
from django.test import Client

from matrix.plots.arrangement import LEFT_OUT_WORDS
from matrix.statistics.cells.states import STATE_WORDS, STATES
from tests.conditions import TYPES, stored_condition
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, NOW, World, transfer, transfers

CELLS = [*product(range(4), repeat=2)]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


@pytest.fixture
def measured(small_world) -> World:
    ral, glasgow, desy, _ = small_world.endpoints
    for rate in (10.0, 11.0, 18.0):
        transfer(ral, glasgow, rate)
    transfer(glasgow, ral, None)
    transfer(desy, ral, 3.0, ago=5 * HOUR)
    return small_world


def decoded(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the file as static/js/matrix/numbers.js does."""
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[4 : 4 + length])
    shape = header["rows"], header["columns"]
    arrays = {}
    for one in header["arrays"]:
        assert one["offset"] % 8 == 0
        count = shape[0] * shape[1]
        array = np.frombuffer(content, f"<{one['kind']}", count, one["offset"])
        arrays[one["name"]] = array.reshape(shape)
    return header, arrays


def fetched(client: Client, text: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    response = client.get(f"/cells/{text}")
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "application/octet-stream"
    return decoded(response.content)


def test_the_file_has_what_the_api_has(client, measured):
    header, arrays = fetched(client)
    api = client.get("/api/v1/matrix/").json()["cells"]
    for name in ("value", "std", "ok", "failed"):
        np.testing.assert_allclose(arrays[name], np.array(api[name], dtype=float), rtol=1e-6)
    assert [[STATES[state] for state in row] for row in arrays["state"]] == api["state"]
    seconds = np.array(
        [[text and text.rstrip("Z") for text in row] for row in api["last"]], "datetime64[s]"
    ).astype(float)
    blank = np.isnan(arrays["last"])
    assert blank.tolist() == [[text is None for text in row] for row in api["last"]]
    np.testing.assert_array_equal(np.floor(arrays["last"][~blank]), seconds[~blank])
    assert header["states"] == [*STATE_WORDS.values(), LEFT_OUT_WORDS]


def test_how_a_link_is_now_is_there_with_the_condition_that_says_so(client, small_world):
    ral, glasgow, desy, scratch = small_world.endpoints
    with transfers() as some:
        for number in range(40):
            some.add(ral, glasgow, 9.0 + number % 3, ago=200 * HOUR + number * HOUR)
        for number in range(1, 4):
            some.add(ral, glasgow, 2.5, ago=number * HOUR)
            some.add(ral, desy, None, ago=number * HOUR)
            some.add(desy, ral, None, ago=number * HOUR)
    slow = stored_condition(TYPES.SLOW, source=ral, destination=glasgow, baseline=10e6)
    dead = stored_condition(TYPES.FAILING, destination=desy, links=[(ral, desy), (scratch, desy)])
    perhaps = stored_condition(TYPES.FAILING, source=desy, destination=ral, confirmed=False)
    header, arrays = fetched(client)
    names = client.get("/").context["picture"]["rows"]["names"]
    here, there, failing = (names.index(end.name) for end in (ral, glasgow, desy))
    assert header["levels"][arrays["level"][here, there]] == "slower"
    assert (arrays["usual"][here, there], arrays["now"][here, there]) == (10.0, 2.5)
    assert STATES[arrays["state"][here, failing]] == "failing"
    for column in (there, failing):
        assert arrays["since"][here, column] == (NOW - 6 * HOUR).timestamp()
    assert arrays["streak"][here, failing] == 3
    assert np.isnan(arrays["since"][there, here])
    assert "failing_links" not in arrays
    said = {at: header["conditions"].get(str(arrays["condition"][at])) for at in CELLS}
    cells = {
        (here, there): "RAL_DATADISK to Glasgow_DATADISK runs at 0.40× (0.35–0.46)",
        (here, failing): "Part of: DESY_DATADISK fails as destination",
        (failing, here): (
            "Unconfirmed: DESY_DATADISK to RAL_DATADISK fails since 20 Nov 06:00 UTC"
        ),
        (there, here): None,
    }
    assert {at: said[at] for at in cells} == cells
    assert {*header["conditions"]} == {str(each.pk) for each in (slow, dead, perhaps)}
    # What is not certain is no state of a link.
    assert STATES[arrays["state"][failing, here]] == "failed"


def test_of_cells_that_pool_links_it_counts_them(client, small_world):
    ral, _, desy, scratch = small_world.endpoints
    for number in range(1, 4):
        transfer(ral, desy, None, ago=number * HOUR)
        transfer(ral, scratch, 5.0, ago=number * HOUR)
    stored_condition(TYPES.FAILING, source=ral, destination=desy)
    _, arrays = fetched(client, "?rows=site&columns=site")
    names = client.get("/?rows=site&columns=site").context["picture"]["rows"]["names"]
    cell = names.index("RAL"), names.index("DESY")
    assert (arrays["tested_links"][cell], arrays["failing_links"][cell]) == (2, 1)
    assert arrays["partly"][cell] == 1


def test_the_median_is_there_whatever_is_asked(client, measured):
    for text in ("", "?stat=count", "?stat=median", "?stat=throughput"):
        _, arrays = fetched(client, text)
        assert np.nanmax(arrays["median"]) == np.float32(11.0), text
        assert np.nanmax(arrays["mean"]) == np.float32(13.0), text


def test_the_header_says_what_the_numbers_are_and_as_of_when(client, measured):
    header, _ = fetched(client, "?stat=success")
    assert (header["stat"], header["unit"]) == ("success", "%")
    assert (header["rows"], header["columns"]) == (4, 4)
    assert header["moment"] == NOW.timestamp()
    assert not header["past"]
    past, _ = fetched(client, "?from=2026-11-20T00:00:00Z&to=2026-11-20T10:00:00Z")
    assert past["past"]
    assert past["moment"] == NOW.timestamp() - 2 * 3600 - 30


def test_rows_and_columns_are_those_of_the_picture(client, measured):
    text = "?order=cloud&transpose=1&only=measured"
    page = client.get(f"/{text}").context["picture"]
    header, arrays = fetched(client, text)
    assert header["version"] == page["version"]
    assert header["arrangement"] == page["arrangement"]
    assert (header["rows"], header["columns"]) == (1, 1)
    assert page["rows"]["names"] == ["Glasgow_DATADISK"]
    assert page["columns"]["names"] == ["RAL_DATADISK"]
    assert arrays["ok"].tolist() == [[3]]
    assert page["cells_url"] == "/cells/?order=cloud&transpose=1&only=measured"


def test_transposed_the_file_is_too(client, measured):
    _, plain = fetched(client)
    _, turned = fetched(client, "?transpose=1")
    for name, array in plain.items():
        np.testing.assert_array_equal(turned[name], array.T)


def test_arrays_of_an_odd_number_of_cells_are_aligned(client, measured):
    header, arrays = fetched(client, "?only=stale&only=failed")
    assert header["rows"] * header["columns"] == 2
    assert arrays["failed"].sum() == 1


def test_nothing_is_a_file_without_cells(client, db):
    header, arrays = fetched(client)
    assert (header["rows"], header["columns"]) == (0, 0)
    assert all(array.size == 0 for array in arrays.values())


def test_bad_parameters_are_the_same_as_on_the_page_in_json(client, db):
    response = client.get("/cells/?stat=mode")
    assert response.status_code == 400
    assert "stat “mode” is not known" in response.json()["errors"]["stat"][0]
    response = client.get("/cells/?order=size")
    assert response.status_code == 400
    assert "order “size” is not known" in response.json()["detail"]
    assert client.post("/cells/").status_code in (403, 405)


def test_an_unchanged_file_is_a_304_of_one_query_and_another_display_is_not(client, measured):
    known = {"if-none-match": client.get("/cells/")["ETag"]}
    assert client.get("/cells/", headers=known).status_code == 304
    assert len(statements(client.get, "/cells/", headers=known)) == 1
    assert client.get("/cells/?transpose=1", headers=known).status_code == 200
    transfer(measured.ral, measured.desy, 5.0)
    assert client.get("/cells/", headers=known).status_code == 200


def test_the_number_of_queries_does_not_grow_with_the_data(client, small_world):
    counts = []
    for more in (1, 0, 9):
        for source, destination in [small_world.endpoints[:2], small_world.endpoints[1:3]] * more:
            transfer(source, destination, 1.0)
        counts.append(len(statements(client.get, "/cells/")))
    # Nothing is read where nothing has changed.
    assert counts == [14, 1, 8]


def test_it_is_compressed_and_kept_by_its_reader_alone(client, measured):
    plain = client.get("/cells/")
    assert "Content-Encoding" not in plain
    response = client.get("/cells/", headers={"accept-encoding": "gzip"})
    assert response["Content-Encoding"] == "gzip"
    assert decoded(gzip.decompress(response.content))[0] == decoded(plain.content)[0]
    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Cookie, Accept-Encoding"
