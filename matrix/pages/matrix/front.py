"""The front page: the matrix or, with `wall=1`, the same for a wall."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from matrix.http.page_rights import for_whom, readers
from matrix.pages.matrix.page import MatrixPage
from matrix.pages.matrix.wall import WallPage
from matrix.pages.views import showing

VIEWS = {page: showing(page) for page in (MatrixPage, WallPage)}


@for_whom(GET=readers)
def front(request: HttpRequest) -> HttpResponseBase:
    return VIEWS[WallPage if "wall" in request.GET else MatrixPage](request)
