"""Routes of pages and API; reading is public unless SONAR_PUBLIC_READ is off."""

from __future__ import annotations

from django.urls import include, path

from matrix.pages.cells import CellsView
from matrix.pages.link import LinkPage
from matrix.pages.matrix import MatrixPage
from matrix.pages.site import SitePage
from matrix.pages.sites import SitesPage
from matrix.pages.table import TablePage
from matrix.pages.transfer import TransferPage
from matrix.posting import add_note, choose_my_site
from matrix.views import search, showing

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
    path("api/", include("matrix.api.urls")),
]
