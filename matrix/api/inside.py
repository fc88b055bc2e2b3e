"""GET /api/v1/inside/: what the rate of a link does while its transfers run."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from matrix.api.base import ApiView
from matrix.api.diagnosis import echo, read_link
from matrix.api.inside_figures import of_inside
from matrix.api.registry.rendering import as_json
from matrix.api.schema.inside import INSIDE


class InsideView(ApiView):
    @INSIDE
    def get(self, request: Request) -> HttpResponse:
        """From the progress samples of its newest 300 successful transfers in the window."""
        link = read_link(request)
        window = link.query.window_at(timezone.now())
        return as_json(
            {
                "query": echo(link, window),
                "unit": "MB/s",
                "simulated": any(end.simulated for end in link.ends),
                "inside": of_inside(link.inside(window)),
            }
        )
