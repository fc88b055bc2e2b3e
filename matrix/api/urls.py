"""Routes of the API, all below /api/v1/."""

from django.urls import path, re_path

from matrix.api.about import IndexView, SchemaView, docs
from matrix.api.causes import CausesView
from matrix.api.commissioning import (
    CommissioningRecordView,
    CommissioningSetView,
    CommissioningView,
)
from matrix.api.diagnosis import DiagnosisView, InsideView
from matrix.api.endpoint_checks import EndpointCheckView
from matrix.api.endpoint_costs import EndpointCostView
from matrix.api.endpoint_states import EndpointStatesView
from matrix.api.events import EventsView
from matrix.api.history import HistoryView
from matrix.api.incidents import IncidentEventsView, IncidentsView, IncidentView
from matrix.api.links import LinksView
from matrix.api.matrix import MatrixView
from matrix.api.network import NetworkView
from matrix.api.probes import ProbesView, ProbeView
from matrix.api.registry.aliases import ALIASES
from matrix.api.registry.criteria_sets import CRITERIA_SETS
from matrix.api.registry.meshes import MESHES, SIZE_CLASSES
from matrix.api.registry.notes import ANNOTATIONS, DOWNTIMES
from matrix.api.registry.sites import ENDPOINTS, SITES
from matrix.api.registry.subscriptions import SUBSCRIPTIONS, SubscriptionsView
from matrix.api.registry.targets import TARGETS
from matrix.api.registry.views import routes
from matrix.api.reports import ReportView
from matrix.api.series import SeriesView
from matrix.api.sites import SitesView, SiteView
from matrix.api.status import StatusView
from matrix.api.stop import StopView
from matrix.api.strip import StripView
from matrix.api.sweeps import SweepsView, SweepView
from matrix.api.transfers.views import TransfersView, TransferView
from matrix.http.exceptions import not_found

urlpatterns = [
    path("v1/", IndexView.as_view(), name="api-index"),
    *routes(ALIASES),
    *routes(ANNOTATIONS),
    path("v1/causes/", CausesView.as_view(), name="api-causes"),
    path("v1/commissioning/", CommissioningView.as_view(), name="api-commissioning"),
    path(
        "v1/commissioning/<str:name>/",
        CommissioningSetView.as_view(),
        name="api-commissioning-set",
    ),
    path(
        "v1/commissioning/<str:name>/<str:source>/<str:destination>/",
        CommissioningRecordView.as_view(),
        name="api-commissioning-record",
    ),
    *routes(CRITERIA_SETS),
    path("v1/diagnosis/", DiagnosisView.as_view(), name="api-diagnosis"),
    path("v1/docs/", docs, name="api-docs"),
    *routes(DOWNTIMES),
    # Before the routes by their names.
    path("v1/endpoints/state/", EndpointStatesView.as_view(), name="api-endpoint-states"),
    *routes(ENDPOINTS),
    path("v1/endpoints/<str:name>/check/", EndpointCheckView.as_view(), name="api-endpoint-check"),
    path("v1/endpoints/<str:name>/cost/", EndpointCostView.as_view(), name="api-endpoint-cost"),
    path("v1/history/", HistoryView.as_view(), name="api-history"),
    path("v1/events/", EventsView.as_view(), name="api-events"),
    path("v1/sweeps/", SweepsView.as_view(), name="api-sweeps"),
    path("v1/sweeps/<uuid:id>/", SweepView.as_view(), name="api-sweep"),
    path("v1/incidents/", IncidentsView.as_view(), name="api-incidents"),
    path("v1/incidents/events/", IncidentEventsView.as_view(), name="api-incident-events"),
    path("v1/incidents/<int:id>/", IncidentView.as_view(), name="api-incident"),
    path("v1/inside/", InsideView.as_view(), name="api-inside"),
    path("v1/links/", LinksView.as_view(), name="api-links"),
    path("v1/matrix/", MatrixView.as_view(), name="api-matrix"),
    *routes(MESHES),
    *routes(TARGETS),
    path("v1/network/", NetworkView.as_view(), name="api-network"),
    path("v1/schema/", SchemaView.as_view(), name="api-schema"),
    path("v1/probes/", ProbesView.as_view(), name="api-probes"),
    path("v1/probes/<uuid:id>/", ProbeView.as_view(), name="api-probe"),
    path("v1/reports/<str:period>/", ReportView.as_view(), name="api-report"),
    path("v1/series/", SeriesView.as_view(), name="api-series"),
    *routes(SITES, SitesView, SiteView),
    *routes(SIZE_CLASSES),
    path("v1/status/", StatusView.as_view(), name="api-status"),
    *routes(SUBSCRIPTIONS, SubscriptionsView, SubscriptionsView),
    path("v1/stop/", StopView.as_view(), name="api-stop"),
    path("v1/strip/", StripView.as_view(), name="api-strip"),
    path("v1/transfers/", TransfersView.as_view(), name="api-transfers"),
    path("v1/transfers/<uuid:id>/", TransferView.as_view(), name="api-transfer"),
    re_path("", not_found, name="api"),
]
