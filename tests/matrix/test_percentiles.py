"""Each percentile is on every page and in every call that has statistics."""

import re

import numpy as np
import pytest

from matrix.query.catalogue import LINK_QUANTILES, STATISTICS
from sonar.notation.units import three_digits
from tests.matrix import responses
from tests.matrix.test_cells_file import decoded
from tests.matrix.world import World, transfers

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("at_noon"),
    pytest.mark.parametrize("name", LINK_QUANTILES),
]
RATES = [float(rate) for rate in range(1, 42)]
LINK = "source=RAL_DATADISK&destination=Glasgow_DATADISK"


@pytest.fixture(autouse=True)
def measured(small_world: World) -> World:
    with transfers() as some:
        for rate in (*RATES, None):
            some.add(small_world.ral, small_world.glasgow, rate)
    return small_world


def value(name: str) -> float:
    return float(np.quantile(RATES, LINK_QUANTILES[name]))


def test_the_matrix_page_has_it(client, name):
    html = responses.html(client, f"/?stat={name}")
    words, written = responses.words(html), three_digits(value(name))
    assert STATISTICS[name].sentence.format(files="large-file transfers") in words
    assert re.search(rf'aria-current="true">{STATISTICS[name].label}\s*<small>', html)
    assert f'title="measured">{written}' in " ".join(html.split())
    assert f"{written} MB/s, {name} of 41" in words
    picture = client.get(f"/?stat={name}").context["picture"]
    assert (picture["unit"], picture["written"]) == ("MB/s", "digits")
    assert picture["said"] == (None if name == "median" else STATISTICS[name].label)
    numbers = [one["text"] for one in picture["figure"]["data"] if "text" in one]
    assert any(written in row for text in numbers for row in text)


def test_the_numbers_behind_the_picture_have_it(client, name):
    header, arrays = decoded(client.get(f"/cells/?stat={name}").content)
    assert (header["stat"], header["unit"]) == (name, "MB/s")
    assert np.nanmax(arrays["value"]) == pytest.approx(value(name), rel=1e-6)
    assert np.nanmax(arrays["median"]) == 21.0


def test_the_matrix_of_the_api_has_it(client, name):
    answer = responses.answer(client, f"/api/v1/matrix/?stat={name}")
    assert (answer["query"]["stat"], answer["unit"]) == (name, "MB/s")
    values = [one for row in answer["cells"]["value"] for one in row if one is not None]
    assert values == [pytest.approx(value(name), abs=1e-6)]
    rows = responses.csv_rows(client, f"/api/v1/matrix/?stat={name}&format=csv")
    written = [float(row["value_mb_s"]) for row in rows if row["value_mb_s"]]
    assert written == values


def test_the_page_of_the_link_has_it_in_both_its_tables(client, name):
    page = client.get("/links/RAL_DATADISK/Glasgow_DATADISK/?window=24h")
    (large,) = [row for row in page.context["directions"][0] if row[0].size == "large"]
    assert large[0].quantiles[name] == pytest.approx(value(name), rel=1e-6)
    html = page.content.decode()
    tables = [
        html.split(mark)[1] for mark in ("One row for each time bucket", '<table id="directions"')
    ]
    label, written = STATISTICS[name].label, three_digits(value(name))
    for table in tables:
        head, body = (responses.words(part) for part in table.split("</thead>")[:2])
        assert label.removesuffix(" percentile") in head
        assert written in body
    at = page.context["drawn"]["columns"].index(label)
    assert [bucket["rates"][at] for bucket in page.context["drawn"]["buckets"]] == [
        pytest.approx(value(name), rel=1e-6)
    ]


def test_the_series_of_the_link_has_it(client, name):
    field = f"{name}_mb_s"
    answer = responses.answer(client, f"/api/v1/series/?{LINK}&bucket=1d&window=1h")
    assert answer["buckets"][field] == [pytest.approx(value(name), abs=1e-6)]
    rows = responses.csv_rows(client, f"/api/v1/series/?{LINK}&bucket=1d&window=1h&format=csv")
    assert [float(row[field]) for row in rows] == answer["buckets"][field]


def test_the_schema_names_it(client, name):
    schema = responses.answer(client, "/api/v1/schema/?format=json")
    models, field = schema["components"]["schemas"], f"{name}_mb_s"
    assert field in models["Buckets"]["required"]
    assert field in models["OfClass"]["properties"]
    assert field not in models["OfClass"]["required"]
    parameters = {
        one["name"]: one["schema"]
        for one in schema["paths"]["/api/v1/matrix/"]["get"]["parameters"]
    }
    assert name in parameters["stat"]["enum"]
    calls = schema["paths"]["/api/v1/links/"]["get"]["parameters"]
    assert {f"large.{field}.min", f"large.{field}.max"} <= {one["name"] for one in calls}
