"""Routes of pages and API; reading is public unless SONAR_PUBLIC_READ is off."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from matrix.api.matrix import CellsView, CodesView
from matrix.api.status import MetricsView
from matrix.http.health import healthz, icon, readyz
from matrix.http.page_rights import anyone, for_whom
from matrix.pages import account, log_in, operations, people, previews, size_classes
from matrix.pages.add_site import work as additions
from matrix.pages.aliases import dismiss_alias, list_aliases, remove_alias
from matrix.pages.causes import CausesPage
from matrix.pages.commissioning import work as criteria_work
from matrix.pages.commissioning.pages import RecordPage, SetPage, SetsPage
from matrix.pages.downtimes import DowntimesPage
from matrix.pages.endpoint import check_endpoint, declare_data_hosts
from matrix.pages.events import EventsPage
from matrix.pages.glossary import GlossaryPage
from matrix.pages.history import history
from matrix.pages.incidents.pages import IncidentsPage, incident
from matrix.pages.link.accept_baseline import accept_baseline
from matrix.pages.link.card import link_card
from matrix.pages.link.page import LinkPage
from matrix.pages.matrix.page import front
from matrix.pages.meshes import work as mesh_work
from matrix.pages.meshes.pages import MeshesPage, MeshPage
from matrix.pages.ordered_tests import (
    SweepPage,
    cancel_sweep,
    link_probes,
    link_sweeps,
)
from matrix.pages.parts.notes import add_note, choose_my_site
from matrix.pages.reports import ReportPage, reports
from matrix.pages.search import search
from matrix.pages.site import work
from matrix.pages.site.page import SitePage
from matrix.pages.sites import SitesPage
from matrix.pages.subscriptions import work as subscription_work
from matrix.pages.table.page import TablePage
from matrix.pages.targets import pages as targets
from matrix.pages.topology import propose_topology, topology
from matrix.pages.transfer import transfer
from matrix.pages.views import showing

# Before the admin gives its addresses: one page offers all that people may log in by.
admin.site.login = log_in.LogIn.as_view()  # type: ignore[method-assign, assignment]

ENDPOINT = "sites/<str:name>/endpoints/<str:endpoint>/"
LINK = "links/<str:source>/<str:destination>/"
CRITERIA = "commissioning/<str:criteria>/"
SUBSCRIPTION = "subscriptions/<int:id>/"

urlpatterns = [
    # First, as routes are tried in turn: programs ask again and again, and most answers are a 304.
    path("api/", include("matrix.api.urls")),
    path("", front, name="matrix"),
    path("cells/", CellsView.as_view(), name="cells"),
    path("cells/codes/", CodesView.as_view(), name="cell-codes"),
    path("preview/", previews.matrix_preview, name="matrix-preview"),
    path("table/", showing(TablePage), name="table"),
    path("causes/", showing(CausesPage), name="causes"),
    path(LINK, showing(LinkPage), name="link"),
    path(f"{LINK}card/", link_card, name="link-card"),
    path(f"{LINK}baseline/", accept_baseline, name="accept-baseline"),
    path(f"{LINK}preview/", previews.link_preview, name="link-preview"),
    path(f"{LINK}tests/", link_probes, name="link-probes"),
    path(f"{LINK}sweeps/", link_sweeps, name="link-sweeps"),
    path("sweeps/<uuid:id>/", showing(SweepPage), name="sweep"),
    path("sweeps/<uuid:id>/cancel/", cancel_sweep, name="cancel-sweep"),
    path("transfers/<uuid:id>/", transfer, name="transfer"),
    path("sites/", showing(SitesPage), name="sites"),
    path("sites/add/", additions.add_site, name="add-site"),
    path("sites/<str:name>/", showing(SitePage), name="site"),
    path("sites/<str:name>/preview/", previews.site_preview, name="site-preview"),
    path("sites/<str:name>/downtimes/", work.declare_downtime, name="declare-downtime"),
    path("sites/<str:name>/downtimes/<int:id>/", work.change_downtime, name="change-downtime"),
    path(ENDPOINT, work.endpoint, name="endpoint"),
    path(f"{ENDPOINT}check/", check_endpoint, name="check-endpoint"),
    path(f"{ENDPOINT}enable/", work.enable_endpoint, name="enable-endpoint"),
    path(f"{ENDPOINT}pause/", work.pause_endpoint, name="pause-endpoint"),
    path(f"{ENDPOINT}data-hosts/", declare_data_hosts, name="declare-data-hosts"),
    path("sites/<str:name>/set-up/", additions.set_up_site, name="set-up-site"),
    path("sites/<str:name>/add-endpoint/", additions.add_endpoint, name="add-endpoint"),
    path(f"{ENDPOINT}set-up/", additions.set_up, name="set-up"),
    path(f"{ENDPOINT}set-up/endpoint/", additions.set_up_endpoint, name="set-up-endpoint"),
    path(f"{ENDPOINT}set-up/credential/", additions.set_credential, name="set-up-credential"),
    path(f"{ENDPOINT}set-up/start/", additions.start, name="set-up-start"),
    path("sites/<str:name>/quiet-hours/", work.change_quiet_hours, name="change-quiet-hours"),
    path("sites/<str:name>/pause/", work.change_pause, name="change-pause"),
    path("sites/<str:name>/notes/", work.write_note, name="site-notes"),
    path("events/", showing(EventsPage), name="events"),
    path("reports/", reports, name="reports"),
    path("reports/<str:period>/", showing(ReportPage), name="report"),
    path("incidents/", showing(IncidentsPage), name="incidents"),
    path("incidents/<int:id>/", incident, name="incident"),
    path("history/", history, name="history"),
    path("people/", people.people, name="people"),
    path("people/<str:name>/", people.person, name="person"),
    path("people/<str:name>/password/", people.set_password, name="set-password"),
    path("glossary/", showing(GlossaryPage), name="glossary"),
    path("search/", search, name="search"),
    path("login/", for_whom(GET=anyone, POST=anyone)(log_in.LogIn.as_view()), name="login"),
    path("login/certificate/", log_in.certificate_log_in, name="certificate-log-in"),
    path("login/oidc/", log_in.provider_log_in, name="oidc-log-in"),
    path("login/oidc/callback/", log_in.provider_callback, name="oidc-callback"),
    path("logout/", for_whom(POST=anyone)(LogoutView.as_view(next_page="matrix")), name="logout"),
    path("my-site/", choose_my_site, name="my-site"),
    path("notes/", add_note, name="notes"),
    path("password/", account.own_password, name="own-password"),
    path("tokens/", account.own_tokens, name="tokens"),
    path("tokens/revoke/", account.revoke_token, name="revoke-token"),
    path("views/", account.own_views, name="views"),
    path("views/rename/", account.rename_view, name="rename-view"),
    path("views/delete/", account.delete_view, name="delete-view"),
    path("subscriptions/", subscription_work.subscriptions_page, name="subscriptions"),
    path("subscriptions/add/", subscription_work.add_subscription, name="add-subscription"),
    path(
        "subscriptions/add/<str:channel>/",
        subscription_work.add_shared_subscription,
        name="add-shared-subscription",
    ),
    path("subscriptions/confirm/", subscription_work.confirm_address, name="confirm-address"),
    path(SUBSCRIPTION, subscription_work.subscription, name="subscription"),
    path(f"{SUBSCRIPTION}test/", subscription_work.try_subscription, name="try-subscription"),
    path(
        f"{SUBSCRIPTION}open-incidents/",
        subscription_work.send_open_incidents,
        name="send-open-incidents",
    ),
    path(
        f"{SUBSCRIPTION}delete/", subscription_work.delete_subscription, name="delete-subscription"
    ),
    path("operations/", showing(operations.OperationsPage), name="operations"),
    path("meshes/", showing(MeshesPage), name="meshes"),
    path("meshes/add/", mesh_work.add_mesh, name="add-mesh"),
    path("meshes/<str:mesh>/", showing(MeshPage), name="mesh"),
    path("meshes/<str:mesh>/change/", mesh_work.change_mesh, name="change-mesh"),
    path("meshes/<str:mesh>/enable/", mesh_work.enable_mesh, name="enable-mesh"),
    path("meshes/<str:mesh>/delete/", mesh_work.delete_mesh, name="delete-mesh"),
    path("commissioning/", showing(SetsPage), name="commissioning"),
    path("commissioning/add/", criteria_work.add_criteria_set, name="add-criteria-set"),
    path(CRITERIA, showing(SetPage), name="criteria-set"),
    path(f"{CRITERIA}change/", criteria_work.change_criteria_set, name="change-criteria-set"),
    path(f"{CRITERIA}delete/", criteria_work.delete_criteria_set, name="delete-criteria-set"),
    path(
        f"{CRITERIA}<str:source>/<str:destination>/",
        showing(RecordPage),
        name="commissioning-record",
    ),
    path("downtimes/", showing(DowntimesPage), name="downtimes"),
    path("targets/", showing(targets.TargetsPage), name="targets"),
    path("targets/add/", targets.add_target, name="add-target"),
    path(
        "targets/<str:target>/",
        targets.change_target,
        name="change-target",
    ),
    path(
        "targets/<str:target>/delete/",
        targets.delete_target,
        name="delete-target",
    ),
    path("size-classes/", showing(size_classes.SizeClassesPage), name="size-classes"),
    path("size-classes/add/", size_classes.add_size_class, name="add-size-class"),
    path("size-classes/<str:size>/", size_classes.change_size_class, name="change-size-class"),
    path("operations/aliases/", list_aliases, name="aliases"),
    path("operations/aliases/dismiss/", dismiss_alias, name="dismiss-alias"),
    path("operations/aliases/remove/", remove_alias, name="remove-alias"),
    path("operations/topology/", topology, name="topology"),
    path("operations/topology/propose/", propose_topology, name="propose-topology"),
    path("operations/probes/", operations.order_probes, name="order-probe"),
    path("operations/stop/", operations.stop_tests, name="stop-tests"),
    path("operations/probes/<uuid:id>/cancel/", operations.cancel_probe, name="cancel-probe"),
    path("metrics", MetricsView.as_view(), name="metrics"),
    path("favicon.ico", icon, name="icon"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
]
