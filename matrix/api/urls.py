"""Routes of the API, all below /api/v1/."""

from __future__ import annotations

from django.urls import path, re_path

from matrix.api.index import IndexView
from matrix.api.links import LinksView
from matrix.api.matrix import MatrixView
from matrix.api.probes import ProbesView, ProbeView
from matrix.api.registry.annotations import AnnotationsView, AnnotationView
from matrix.api.registry.downtimes import DowntimesView, DowntimeView
from matrix.api.registry.endpoints import EndpointsView, EndpointView
from matrix.api.registry.meshes import MeshesView, MeshView
from matrix.api.registry.size_classes import SizeClassesView, SizeClassView
from matrix.api.schema.docs_page import docs
from matrix.api.schema.document import SchemaView
from matrix.api.series import SeriesView
from matrix.api.sites import SitesView, SiteView
from matrix.api.status import StatusView
from matrix.api.transfers.detail import TransferView
from matrix.api.transfers.ingest import TransfersView
from matrix.http.exceptions import not_found

urlpatterns = [
    path("v1/", IndexView.as_view(), name="api-index"),
    path("v1/annotations/", AnnotationsView.as_view(), name="api-annotations"),
    path("v1/annotations/<int:id>/", AnnotationView.as_view(), name="api-annotation"),
    path("v1/docs/", docs, name="api-docs"),
    path("v1/downtimes/", DowntimesView.as_view(), name="api-downtimes"),
    path("v1/downtimes/<int:id>/", DowntimeView.as_view(), name="api-downtime"),
    path("v1/endpoints/", EndpointsView.as_view(), name="api-endpoints"),
    path("v1/endpoints/<str:name>/", EndpointView.as_view(), name="api-endpoint"),
    path("v1/links/", LinksView.as_view(), name="api-links"),
    path("v1/matrix/", MatrixView.as_view(), name="api-matrix"),
    path("v1/meshes/", MeshesView.as_view(), name="api-meshes"),
    path("v1/meshes/<str:name>/", MeshView.as_view(), name="api-mesh"),
    path("v1/schema/", SchemaView.as_view(), name="api-schema"),
    path("v1/probes/", ProbesView.as_view(), name="api-probes"),
    path("v1/probes/<uuid:id>/", ProbeView.as_view(), name="api-probe"),
    path("v1/series/", SeriesView.as_view(), name="api-series"),
    path("v1/sites/", SitesView.as_view(), name="api-sites"),
    path("v1/sites/<str:name>/", SiteView.as_view(), name="api-site"),
    path("v1/size-classes/", SizeClassesView.as_view(), name="api-size-classes"),
    path("v1/size-classes/<str:name>/", SizeClassView.as_view(), name="api-size-class"),
    path("v1/status/", StatusView.as_view(), name="api-status"),
    path("v1/transfers/", TransfersView.as_view(), name="api-transfers"),
    path("v1/transfers/<uuid:id>/", TransferView.as_view(), name="api-transfer"),
    re_path("", not_found),
]
