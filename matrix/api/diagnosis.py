"""GET /api/v1/diagnosis/: why a link is slow or fails, as far as its results tell."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.diagnosis import link_diagnosis
from matrix.answers.diagnosis.evidence import LinkEvidence
from matrix.answers.diagnosis.link_diagnosis import LinkDiagnosis
from matrix.answers.diagnosis.rule import Diagnosis
from matrix.answers.diagnosis.streams import StreamsEffect
from matrix.answers.experiments import report as experiments
from matrix.answers.link import report
from matrix.answers.link.report import Question
from matrix.api.base import ApiView
from matrix.api.numbers import known_number, number
from matrix.api.parameters import WINDOW_AND_METHOD
from matrix.api.registry.rendering import as_json
from matrix.api.schema.diagnosis import DIAGNOSIS
from matrix.api.series import ends
from matrix.http.negotiation import asked_format
from matrix.query.filters import by_parameter
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.transfers.evidence import PeerRates
from sonar.notation.windows import Window, format_time

Json = dict[str, Any]
OWN = ("source", "destination", "format")
# Among so many of the newest experiments of a link that with streams is looked for.
MOST_EXPERIMENTS = 5


class DiagnosisView(ApiView):
    @DIAGNOSIS
    def get(self, request: Request) -> HttpResponse:
        """With the evidence that the rules go by; of a healthy link there is no diagnosis."""
        link, now = read_link(request), timezone.now()
        answer = report.answer(link, now)
        query = {"query": echo(link, answer.window)}
        source, destination = link.ends
        newest = experiments.of_link(source.id, destination.id, now, MOST_EXPERIMENTS)
        return as_json(query | of_diagnosis(link_diagnosis.of_report(answer, newest, now)))


def read_link(request: Request) -> Question:
    """Read which link a call is about, in which size class and window."""
    params = request.query_params
    check_names(params, (*WINDOW_AND_METHOD, *OWN))
    asked_format(request, ("json",))
    query = MatrixQuery.from_params(params, also=OWN)
    return Question(*ends(params), query)


def echo(link: Question, window: Window) -> Json:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    return {
        "source": link.source.name,
        "destination": link.destination.name,
        "size": link.query.size,
        "window": link.query.window or None,
        "start": format_time(window.start),
        "end": format_time(window.end),
        **by_parameter(link.query.filters),
    }


def of_diagnosis(diagnosis: LinkDiagnosis) -> Json:
    return {
        "diagnoses": [of_rule(each) for each in diagnosis.diagnoses],
        "silence": diagnosis.silence,
        "evidence": of_evidence(diagnosis.evidence),
    }


def of_rule(diagnosis: Diagnosis) -> Json:
    return asdict(diagnosis) | {"strength": number(diagnosis.strength)}


def of_evidence(evidence: LinkEvidence) -> Json:
    scatter, nominal = evidence.scatter, evidence.nominal
    return {
        "ok": evidence.ok,
        "median_mb_s": number(evidence.median),
        "usual_mb_s": number(evidence.usual),
        "level": evidence.level,
        "scatter": scatter
        and {
            "spread": number(scatter.spread),
            "by_loss": number(scatter.by_loss),
            "n": scatter.n,
        },
        "streams": evidence.streams and of_streams(evidence.streams),
        "source": of_peers(evidence.sending),
        "destination": of_peers(evidence.receiving),
        "nominal_mb_s": number(nominal.mb_s) if nominal else None,
        **of_network(evidence),
    }


def of_network(evidence: LinkEvidence) -> Json:
    sender, receiver = evidence.sockets or (None, None)
    return {
        "rtt_ms": known_number(evidence.rtt_ms),
        "loss": known_number(evidence.loss),
        "network_mb_s": known_number(evidence.network_rate),
        "network_tests": evidence.network_tests,
        "max_cwnd_bytes": sender,
        "max_receive_window_bytes": receiver,
    }


def of_streams(streams: StreamsEffect) -> Json:
    slope = streams.slope
    return {
        "least": streams.least,
        "most": streams.most,
        "factor": number(slope.factor),
        "factor_low": number(slope.interval[0]),
        "factor_high": number(slope.interval[1]),
        "n": slope.n,
        "trend": slope.trend,
    }


def of_peers(rates: PeerRates) -> Json:
    return {
        "elsewhere_mb_s": number(rates.rate),
        "partners": rates.partners,
        "factor": number(rates.factor),
        "factor_low": number(rates.low),
        "factor_high": number(rates.high),
        "compared": rates.compared,
    }
