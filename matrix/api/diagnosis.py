"""GET /api/v1/diagnosis/ and inside/: why a link is slow or fails, and what its transfers do."""

from datetime import datetime
from typing import Annotated, Literal

from django.http import HttpResponse
from django.utils import timezone
from pydantic import ConfigDict
from rest_framework.request import Request

from matrix.answers.conditions import words
from matrix.answers.diagnosis import link_diagnosis
from matrix.answers.link import report
from matrix.answers.link.report import Question, of_links
from matrix.answers.link.verdict import ordered
from matrix.answers.ordering import sweeps
from matrix.api.base import ApiView
from matrix.api.parameters import WINDOW_AND_METHOD
from matrix.api.rendering import as_json
from matrix.api.schema.describe import described
from matrix.api.schema.link_parts import InsideFigures, RuleSays
from matrix.api.schema.records import As, At, Moment, MomentOrNull, Number, record, to_number
from matrix.api.schema.schemas import Answer, CellLevel
from matrix.api.series import LINK, echo_of_link, ends
from matrix.http.negotiation import asked_format
from matrix.http.permissions import MACHINES, sees
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.transfers.evidence import Trend


class ScatterEvidence(Answer):
    """The scatter of the rates of comparable tests."""

    spread: Annotated[float, As(to_number)]
    by_loss: Annotated[float, As(to_number)]
    n: int


class StreamsEvidence(Answer):
    """The effect of the number of TCP streams on the rate."""

    least: int
    most: int
    factor: Annotated[Number, At("slope.factor")]
    factor_low: Annotated[Number, At("slope.interval.0")]
    factor_high: Annotated[Number, At("slope.interval.1")]
    n: Annotated[int, At("slope.n")]
    trend: Annotated[Trend, At("slope.trend")]


class EndEvidence(Answer):
    """The source or destination of the link, compared with its peers on other links."""

    elsewhere_mb_s: Annotated[Number, At("rate")]
    partners: int
    factor: Number
    factor_low: Annotated[Number, At("low")]
    factor_high: Annotated[Number, At("high")]
    compared: int


class DiagnosisEvidence(Answer):
    """The figures that the diagnoses are based on."""

    ok: int
    median_mb_s: Annotated[Number, At("median")]
    usual_mb_s: Annotated[Number, At("usual")]
    level: CellLevel
    scatter: ScatterEvidence | None
    streams: StreamsEvidence | None
    source: Annotated[EndEvidence, At("sending")]
    destination: Annotated[EndEvidence, At("receiving")]
    nominal_mb_s: Annotated[Number, At("nominal.mb_s")]
    rtt_ms: Number
    loss: Annotated[Number, At("network.loss")]
    network_mb_s: Annotated[Number, At("network.rate")]
    network_tests: Annotated[int, At("network.done"), As(len)]
    max_cwnd_bytes: Annotated[int | None, At("network.sockets.0")]
    max_receive_window_bytes: Annotated[int | None, At("network.sockets.1")]


class LinkCondition(Answer):
    """An open condition of the link, or of its source, its destination, a site or the grid."""

    condition: Annotated[int, At("pk")]
    scope: Literal["link", "source", "destination", "endpoint", "site", "grid"]
    type: Literal["failing", "silent", "slow", "fast"]
    size_classes: list[str]
    since: Moment
    since_low: Moment
    since_high: Moment
    confirmed_at: MomentOrNull
    factor: Number
    factor_low: Number
    factor_high: Number
    links: int
    of_links: int
    tests: int
    failed: int
    sentence: str


class DiagnosisQuery(Answer):
    """The query parameters, including default values.

    Each filter is a list of values, under the name of its parameter.
    """

    model_config = ConfigDict(extra="allow")

    source: str
    destination: str
    size: str
    window: str | None
    start: datetime
    end: datetime


class LinkDiagnosed(Answer):
    """The diagnoses of a link, with its open conditions and the evidence."""

    query: DiagnosisQuery
    assessed_at: MomentOrNull
    conditions: list[LinkCondition]
    diagnoses: list[RuleSays]
    silence: str
    evidence: DiagnosisEvidence


class LinkInside(Answer):
    """The rates of a link during its transfers."""

    query: DiagnosisQuery
    unit: str
    simulated: bool
    inside: InsideFigures | None


OWN = ("source", "destination", "format")
# Among so many of the newest sweeps of a link that with streams is looked for.
MOST_SWEEPS = 5


class DiagnosisView(ApiView):
    @described("Diagnose a link", answer=LinkDiagnosed, parameters=LINK, tag="results")
    def get(self, request: Request) -> HttpResponse:
        """Returns the likely reasons why a link is slow or fails, with the evidence.

        A healthy link has no diagnosis. Only operators and administrators see the names of slow
        data servers.
        """
        link, now = read_link(request), timezone.now()
        answer = report.answer(link, now)
        source, destination = link.ends
        newest = sweeps.newest_reports(source.id, destination.id, now, MOST_SWEEPS)
        diagnosis = link_diagnosis.diagnosis_of_report(
            answer, newest, now, names_machines=sees(request, MACHINES)
        )
        query = echo_of_link(link.ends, link.query, answer.window)
        open_ones = [*of_links(answer.judgement), *filter(None, [answer.judgement.doubtful])]
        conditions = [
            record(LinkCondition, each, sentence=words.sentence(each))
            for each in ordered(open_ones)
        ]
        more = {"assessed_at": answer.judgement.as_of, "conditions": conditions}
        return as_json(record(LinkDiagnosed, diagnosis, query=query, **more))


def read_link(request: Request) -> Question:
    """Read which link a call is about, in which size class and window."""
    params = request.query_params
    check_names(params, (*WINDOW_AND_METHOD, *OWN))
    asked_format(request, ("json",))
    query = MatrixQuery.from_params(params, also=OWN)
    return Question(*ends(params), query)


class InsideView(ApiView):
    @described(
        "Get the rates of a link during its transfers",
        answer=LinkInside,
        parameters=LINK,
        tag="results",
    )
    def get(self, request: Request) -> HttpResponse:
        """Returns how the rate varies while transfers run.

        The figures are computed from progress samples of the newest 300 successful transfers in
        the time range.
        """
        link = read_link(request)
        window = link.query.window_at(timezone.now())
        answer = record(
            LinkInside,
            query=echo_of_link(link.ends, link.query, window),
            unit="MB/s",
            simulated=any(end.simulated for end in link.ends),
            inside=link.rate_profile(window),
        )
        return as_json(answer)
