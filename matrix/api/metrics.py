"""GET /metrics for Prometheus: requests as django-prometheus counts them, and how Sonar itself is.

The first are of all web processes if PROMETHEUS_MULTIPROC_DIR names a directory that they share,
else of the one that answers. The others are read anew for each scrape, as status/ reads them.
"""

from __future__ import annotations

from django.http import HttpResponse
from django_prometheus.exports import ExportToDjangoView
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry
from prometheus_client import generate_latest as in_text
from rest_framework.request import Request

from matrix.answers.status.metrics import Figures
from matrix.api.base import ApiView
from matrix.query.forms import check_names


class MetricsView(ApiView, one_snapshot=False):
    def get(self, request: Request) -> HttpResponse:
        """Answer in the text format of Prometheus, whatever is away."""
        check_names(request.query_params, [])
        own = CollectorRegistry(auto_describe=False)
        own.register(Figures())
        requests: bytes = ExportToDjangoView(request).content
        return HttpResponse(requests + in_text(own), content_type=CONTENT_TYPE_LATEST)
