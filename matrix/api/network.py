"""GET /api/v1/network/: tests of the network alone, newest first."""

from typing import Annotated, Literal
from uuid import UUID

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.link.network import loss_of, rate_of
from matrix.api.base import ApiView
from matrix.api.parameters import OF_TRANSFERS, PAGING, PageRequest, echo, following, some_of
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import LINKS_FILTERED, WINDOW, paging, several
from matrix.api.schema.records import As, At, Json, Micros, Name, NameOrNull, Text, present, record
from matrix.api.schema.schemas import Answer, Listed, echo_shape
from matrix.http.negotiation import LIST, asked_format
from matrix.query.filters import LINK_FILTERS
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.store import network, registry
from matrix.store.keyset import Cursor
from matrix.store.network import NetworkSelection
from sonar.models import NetworkResult, Transfer


class NetworkTest(Answer):
    """A network test, which moves data from memory to memory.

    Round-trip times and TCP windows are measured by the sender and are known only for tests in
    `push` mode.
    """

    id: UUID
    source: Name
    destination: Name
    started_at: Micros
    seconds: float
    bytes: int
    state: Literal["done", "failed", "lost"]
    error: Text
    error_where: Annotated[
        Literal["source", "destination", "transfer", "control"] | None, As(present)
    ]
    rate_mb_s: float | None
    rtt_min_ms: float | None
    rtt_mean_ms: float | None
    rtt_max_ms: float | None
    retransmits: int | None
    loss: float | None
    sent_bytes: int | None
    max_cwnd_bytes: int | None
    max_receive_window_bytes: int | None
    mss_bytes: int | None
    congestion_control: Text
    mover: str
    mode: Literal["pull", "push"]
    streams: int
    tcp_buffer_bytes: int | None
    ip_version: Literal[4, 6] | None
    size: Annotated[NameOrNull, At("size_class")]
    mesh: NameOrNull
    samples: list[list[float]]


COLUMNS = tuple(name for name in NetworkTest.model_fields if name != "samples")
ECHO = echo_shape(", states", ("window",), lists=("state",))
NETWORK = described(
    "List network tests",
    answer=Listed("results", NetworkTest, also={"query": ECHO}),
    parameters=[
        *WINDOW,
        *LINKS_FILTERED,
        several(
            "state",
            "Only tests in one of these states. Default: all states.",
            enum=Transfer.State.values,
        ),
        *paging(OF_TRANSFERS),
    ],
    formats=("json", "csv", "ndjson"),
    tag="results",
)


OWN = ("state", *PAGING, "format")
ALLOWED = ("window", "from", "to", *LINK_FILTERS, *OWN)
# All at once in CSV and NDJSON: more than a year of a test a quarter of an hour on three links.
MOST_ROWS = 100_000


class NetworkView(ApiView):
    @NETWORK
    def get(self, request: Request) -> HttpResponseBase:
        """Returns tests that move data from memory to memory, newest first.

        Network tests move no files and are not included in the rates of a matrix, link or site.
        """
        params = request.query_params
        check_names(params, ALLOWED)
        form = asked_format(request, LIST)
        query = MatrixQuery.from_params(params, also=OWN)
        window = query.window_at(timezone.now())
        states = some_of(params, "state", Transfer.State.values)
        page = PageRequest.read(request, form, Cursor.parse, OF_TRANSFERS)
        endpoints = registry.read_places(registry.read_versions())
        rows = NetworkSelection(window, query.filters, states).rows(endpoints)
        size = page.size if form == "json" else MOST_ROWS
        listed, further = network.listing(rows, size, page.after)
        records = [of_result(result) for result in listed]
        if form != "json":
            name = file_name("network", query=query, window=window)
            return as_rows(records, form, COLUMNS, name)
        question = echo(query, window, state=states or Transfer.State.values)
        del question["size"]
        next_page = following(request, further, window)
        return as_json({"query": question, "results": records, "next": next_page})


def of_result(result: NetworkResult) -> Json:
    """Return what everybody may see of a result; null where nobody told."""
    return record(NetworkTest, result, rate_mb_s=rate_of(result), loss=loss_of(result))
