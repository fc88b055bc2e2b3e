"""Routes of the API, all below /api/v1/."""

from __future__ import annotations

from django.urls import path, re_path

from matrix.api.errors import not_found
from matrix.api.links import LinksView
from matrix.api.matrix import MatrixView
from matrix.api.results import TransferView
from matrix.api.series import SeriesView
from matrix.api.sites import SitesView, SiteView
from matrix.api.transfers import TransfersView

urlpatterns = [
    path("v1/links/", LinksView.as_view(), name="api-links"),
    path("v1/matrix/", MatrixView.as_view(), name="api-matrix"),
    path("v1/series/", SeriesView.as_view(), name="api-series"),
    path("v1/sites/", SitesView.as_view(), name="api-sites"),
    path("v1/sites/<str:name>/", SiteView.as_view(), name="api-site"),
    path("v1/transfers/", TransfersView.as_view(), name="api-transfers"),
    path("v1/transfers/<uuid:id>/", TransferView.as_view(), name="api-transfer"),
    re_path("", not_found),
]
