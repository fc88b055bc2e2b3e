"""Requests as /metrics counts them."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django_prometheus.middleware import PrometheusAfterMiddleware
from prometheus_client import Counter, Histogram


class CountRequests(PrometheusAfterMiddleware):  # type: ignore[misc]  # it has no types
    """Counts requests by view and method; a method that is none of HTTP's is one label.

    Views go by the names of their routes, so that there are as many labels as routes.
    """

    def label_metric(
        self,
        metric: Counter | Histogram,
        request: HttpRequest,
        response: HttpResponseBase | None = None,
        **labels: str,
    ) -> Counter | Histogram:
        if "method" in labels:
            labels["method"] = self._method(request)
        return super().label_metric(metric, request, response, **labels)  # type: ignore[no-any-return]
