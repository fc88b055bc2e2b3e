"""Routes of pages and API; reading is public unless SONAR_PUBLIC_READ is off."""

from __future__ import annotations

from django.urls import include, path

from matrix.api.matrix_cells import CellsView
from matrix.api.metrics import MetricsView
from matrix.http.health import healthz, readyz
from matrix.pages.link.page import LinkPage
from matrix.pages.matrix.page import MatrixPage
from matrix.pages.note_forms import add_note, choose_my_site
from matrix.pages.operations.page import OperationsPage
from matrix.pages.probe_forms import cancel_probe, order_probe
from matrix.pages.site.page import SitePage
from matrix.pages.sites import SitesPage
from matrix.pages.table.page import TablePage
from matrix.pages.tokens import own_tokens, revoke_token
from matrix.pages.transfer.page import TransferPage
from matrix.pages.views import search, showing

urlpatterns = [
    path("", showing(MatrixPage), name="matrix"),
    path("cells/", CellsView.as_view(), name="cells"),
    path("table/", showing(TablePage), name="table"),
    path("links/<str:source>/<str:destination>/", showing(LinkPage), name="link"),
    path("transfers/<uuid:id>/", showing(TransferPage), name="transfer"),
    path("sites/", showing(SitesPage), name="sites"),
    path("sites/<str:name>/", showing(SitePage), name="site"),
    path("search/", search, name="search"),
    path("my-site/", choose_my_site, name="my-site"),
    path("notes/", add_note, name="notes"),
    path("tokens/", own_tokens, name="tokens"),
    path("tokens/revoke/", revoke_token, name="revoke-token"),
    path("operations/", showing(OperationsPage), name="operations"),
    path("operations/probes/", order_probe, name="order-probe"),
    path("operations/probes/<uuid:id>/cancel/", cancel_probe, name="cancel-probe"),
    path("metrics", MetricsView.as_view(), name="metrics"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("api/", include("matrix.api.urls")),
]
