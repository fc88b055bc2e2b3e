"""Meshes by filter and the matrix: the same filter chooses the same endpoints."""

from typing import Any

import numpy as np
import pytest
from django.http import QueryDict
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import LinkIndex
from matrix.store import registry
from sonar.models import Endpoint, Mesh, Site
from sonar.notation.endpoint_filters import as_query, tidied
from sonar.registry.mesh_members import at_end, read_endpoints
from tests.properties import examples

CLOUDS, LABELS, TAGS = ("UK", "DE", ""), ("DATADISK", "TAPE"), ("dc27", "atlas", "tape")
SITES = st.fixed_dictionaries(
    {
        "cloud": st.sampled_from(CLOUDS),
        "tier": st.integers(0, 3),
        "country": st.sampled_from(["GB", "NO", ""]),
        "tags": st.lists(st.sampled_from(TAGS), unique=True),
    }
)
ENDPOINTS = st.fixed_dictionaries(
    {
        "label": st.sampled_from(LABELS),
        "tags": st.lists(st.sampled_from(TAGS), unique=True),
        "retired": st.booleans(),
    }
)


def values(*texts: str) -> st.SearchStrategy[list[str]]:
    either = st.sampled_from([*texts, *(f"!{text}" for text in texts)])
    return st.lists(either, min_size=1, max_size=3)


FILTERS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "cloud": values("UK", "DE", "FR"),
        "tier": values("0", "1", "2"),
        "country": values("GB", "NO"),
        "site": values("S0", "S1"),
        "label": values(*LABELS),
        "tag": values(*TAGS, "none"),
        "endpoint": values("E0", "E3"),
    },
).filter(bool)


@pytest.mark.long
@pytest.mark.django_db
@examples(30)
@given(
    sites=st.lists(SITES, min_size=2, max_size=3),
    ends=st.lists(ENDPOINTS, min_size=4, max_size=8),
    chosen=FILTERS,
)
def test_the_members_of_a_mesh_are_what_the_matrix_shows_as_sources(sites, ends, chosen):
    Endpoint.objects.all().delete()
    Site.objects.all().delete()
    rows = [Site.objects.create(name=f"S{at}", **facts) for at, facts in enumerate(sites)]
    for at, facts in enumerate(ends):
        retired_at = timezone.now() if facts["retired"] else None
        Endpoint.objects.create(
            name=f"E{at}",
            site=rows[at % len(rows)],
            label=facts["label"],
            tags=facts["tags"],
            base_url=f"https://e{at}.example/data",
            retired_at=retired_at,
        )
    mesh = Mesh(name="m", sources_filter=tidied(chosen))
    members = {each.texts["endpoint"][0] for each in at_end(mesh, "sources", read_endpoints())}
    asked = "&".join(f"source_{part}" for part in as_query(mesh.sources_filter).split("&"))
    query = MatrixQuery.from_params(QueryDict(asked))
    index = LinkIndex(registry._read_places())
    shown = np.flatnonzero(index.touched(index.passing(query.filters))[0])
    in_use = (index.places[at] for at in shown if not index.places[at].retired)
    assert members == {place.name for place in in_use}
