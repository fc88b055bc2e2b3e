"""What watches Sonar asks: /healthz, /readyz, and the counts of requests in /metrics."""

from dataclasses import asdict

from django.contrib.staticfiles.storage import staticfiles_storage
from django.http import HttpRequest, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django_prometheus.middleware import PrometheusAfterMiddleware
from prometheus_client import Counter, Histogram

from matrix.answers.status.health import MEASUREMENTS, REPLICA, look
from matrix.http.page_rights import anyone, for_whom


@for_whom(GET=anyone)
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer, without asking anybody."""
    return JsonResponse({"alive": True})


@for_whom(GET=anyone)
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if all parts work, else 503.

    Without the replica all goes on, and with doubtful results, too.
    """
    parts = look(timezone.now())
    ready = all(part.ok for name, part in parts.items() if name not in (REPLICA, MEASUREMENTS))
    answer = {"ready": ready, "parts": {name: asdict(part) for name, part in parts.items()}}
    return JsonResponse(answer, status=200 if ready else 503)


@for_whom(GET=anyone)
def icon(request: HttpRequest) -> HttpResponseRedirect:
    """Lead to the icon that pages name."""
    return HttpResponseRedirect(staticfiles_storage.url("icon.svg"))


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
