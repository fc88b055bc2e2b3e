"""/api/v1/endpoints/<name>/cost/?mesh=: what tests of an endpoint cost in a mesh, before saving."""

from typing import Annotated

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers import cost
from matrix.api.base import ApiView
from matrix.api.parameters import named, wrong
from matrix.api.registry.sites import ENDPOINTS
from matrix.api.registry.views import visible
from matrix.api.rendering import as_json
from matrix.api.schema import parameters as schema
from matrix.api.schema.describe import described
from matrix.api.schema.records import As, At, Number, record, to_number
from matrix.api.schema.schemas import Answer
from matrix.http.negotiation import asked_format
from matrix.http.permissions import reader_of
from matrix.query.forms import check_names
from sonar.models import Mesh
from sonar.registry.cost import words

Figure = Annotated[float, As(to_number)]


class LimitShare(Answer):
    """A limit, and how much of it all meshes together would use."""

    whose: str
    used: Figure
    limit: Figure
    share: Figure


class WholeGridBytes(Answer):
    """The bytes per hour that all meshes together request."""

    today: Figure
    afterwards: Figure
    limit: Annotated[int | None, As(lambda value: value or None)]


class SizeCost(Answer):
    """The cost of testing an endpoint in one size class, and the time to detect problems."""

    size: Annotated[str, At("0.name")]
    test_bytes: Annotated[int, At("0.test_bytes")]
    every_seconds: Annotated[int, At("0.every_seconds")]
    links_out: Annotated[int, At("0.links_out")]
    links_in: Annotated[int, At("0.links_in")]
    asked_out: Annotated[Figure, At("0.asked_out")]
    asked_in: Annotated[Figure, At("0.asked_in")]
    tests_out: Annotated[Figure, At("0.allowed_out")]
    tests_in: Annotated[Figure, At("0.allowed_in")]
    bytes_per_day: Annotated[Figure, At("0.bytes_per_day")]
    slowdown_seconds: Annotated[Number, At("1.slowdown_seconds")]
    failing_seconds: Annotated[Number, At("1.failing_seconds")]
    usual_seconds: Annotated[Number, At("1.usual_seconds")]


class EndpointCost(Answer):
    """The cost of testing an endpoint in a mesh, as if both were enabled."""

    endpoint: str
    mesh: str
    in_words: str
    links_out: int
    links_in: int
    asked_tests_per_day: Annotated[Figure, At("asked_per_day")]
    asked_bytes_per_day: Figure
    tests_per_day: Figure
    tests_per_hour: Figure
    bytes_per_day: Figure
    bytes_per_hour: Figure
    budget: LimitShare | None
    nearest_budget: LimitShare | None
    cap_out: LimitShare | None
    cap_in: LimitShare | None
    nearest_cap: LimitShare | None
    wan: LimitShare | None
    whole_grid: Annotated[WholeGridBytes, At("grid")]
    round_seconds: Figure
    remarks: list[str]
    sizes: list[SizeCost]


SHOW = described(
    "Estimate the cost of testing an endpoint in a mesh",
    answer=EndpointCost,
    parameters=[
        schema.text(
            "mesh",
            "Name of the mesh that the endpoint belongs to or would join.",
            "uk",
            required=True,
        )
    ],
    errors=(404,),
    tag="operation",
)


class EndpointCostView(ApiView, of_primary=True):
    @SHOW
    def get(self, request: Request, name: str) -> HttpResponse:
        """Returns how many tests and bytes an endpoint adds to a mesh. Nothing is changed.

        Use this request before an endpoint is enabled or added to a mesh. A mesh that lists its
        endpoints by name is treated as if the list included this endpoint. The estimate considers
        quiet hours, pauses, caps, budgets and limits on bytes.
        """
        check_names(request.query_params, ["format", "mesh"])
        asked_format(request, ["json"])
        endpoint = visible(ENDPOINTS, ENDPOINTS.rows(), name, reader_of(request))
        mesh = named(request.query_params, "mesh", Mesh)
        if mesh is None:
            raise wrong(
                "mesh",
                "“mesh” is missing: name the mesh that the endpoint belongs to or would join.",
            )
        answer = cost.of_endpoint(endpoint, mesh, timezone.now())
        shown = record(
            EndpointCost,
            answer.cost,
            in_words=words.summary(answer.cost),
            sizes=list(zip(answer.cost.classes, answer.noticed, strict=True)),
        )
        return as_json(shown)
