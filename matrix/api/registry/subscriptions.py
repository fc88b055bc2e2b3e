"""/api/v1/subscriptions/: shared notification subscriptions. Own ones exist only on pages."""

from typing import Annotated, Any, Literal, get_args

from django.db.models import QuerySet
from django.utils import timezone
from pydantic import Field
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.views import APIView

from matrix.api.parameters import wrong
from matrix.api.registry.resource import BY_ID, CallText, Resource
from matrix.api.registry.values import (
    ID,
    Values,
    field,
    flag,
    line,
    name_of,
    needed_text,
    quiet_times,
    record_of,
    whole,
)
from matrix.api.registry.views import ResourceView
from matrix.api.schema.records import Json
from matrix.api.schema.schemas import Body
from matrix.http.permissions import MayOperate, reader_of
from sonar.alerting import subscriptions
from sonar.alerting.channels import catalogue
from sonar.credentials.encryption import OtherKeyError
from sonar.models import Site, Subscription
from sonar.models.notifications import LONGEST_NAME, MOST_CAP
from sonar.notation.enumeration import either, not_registered
from sonar.people import roles
from sonar.registry.file.sections import quiet_columns

SEE = "sonar.view_subscription"
CHANNEL = f"the name of a channel: {either(catalogue.names())}"
KINDS = f"^({'|'.join(catalogue.names())})$"
BESIDE = ("settings", "sites", "quiet_hours")
IncidentScopes = Literal["link", "source", "destination", "endpoint", "site", "grid"]
IncidentTypes = Literal["slow", "silent", "failing"]
Sites = list[Annotated[str, name_of("site", "Site in the list.")]]


class SubscriptionBody(Body):
    """A shared subscription: its incidents, its channel and its schedule."""

    name: Annotated[str, needed_text(LONGEST_NAME, "Name of the subscription.")]
    channel: Annotated[
        str,
        field(CHANNEL, "Channel that delivers the messages.", max_length=20, pattern=KINDS),
    ]
    address: Annotated[
        str,
        line(
            254,
            "E-mail address of the receiver. For channels other than `email`, Sonar sets this "
            "field to the scheme and host of the channel URL.",
        ),
    ] = ""
    enabled: Annotated[bool, flag("Whether notifications are sent.")] = True
    scope: Annotated[
        Literal["sites", "grid"],
        field(
            "sites or grid",
            "Incidents that match the subscription. `sites`: incidents that affect a site in the "
            "field `sites`. `grid`: all incidents.",
            strict=None,
        ),
    ] = "grid"
    sites: Annotated[
        Sites,
        field(
            "a list of at most 1000 names of registered sites",
            "Sites whose incidents match the subscription if `scope` is `sites`.",
            max_length=1000,
        ),
    ] = []
    incident_scopes: Annotated[
        list[IncidentScopes],
        field(
            f"a list in which each item is {either(get_args(IncidentScopes))}",
            "Scopes of the incidents that match the subscription. An empty list means all scopes.",
            strict=None,
        ),
    ] = []
    incident_types: Annotated[
        list[IncidentTypes],
        field(
            f"a list in which each item is {either(get_args(IncidentTypes))}",
            "Types of the incidents that match the subscription. An empty list means all types.",
            strict=None,
        ),
    ] = []
    digest_hour: Annotated[
        int | None,
        whole(
            0,
            23,
            "Hour of the day in UTC at which one daily message with all notifications is sent. "
            "Null means one message per incident.",
            or_null=True,
        ),
    ] = None
    quiet_hours: Annotated[
        str | None,
        quiet_times(
            "Period of the day in UTC in which notifications are held. Held notifications are "
            "sent together when the quiet hours end. Null means no quiet hours."
        ),
    ] = None
    cap: Annotated[
        int,
        whole(
            1,
            MOST_CAP,
            "Maximum number of messages per hour. Further notifications are combined into one "
            "message.",
        ),
    ] = 10


class NewSubscription(SubscriptionBody):
    """A shared subscription to add, with the settings of its channel."""

    settings: Annotated[
        dict[str, Annotated[str, Field(max_length=catalogue.LONGEST)]],
        field(
            "an object that maps names of settings, such as “url” and “key”, to strings",
            "Settings of the channel. They are stored encrypted, and no response contains them.",
            strict=None,
        ),
    ] = {}


class MayKeepLists(MayOperate):
    """Reading needs the right to see shared subscriptions; writing is as for other resources."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.method in SAFE_METHODS:
            return roles.may_somewhere(reader_of(request), SEE)
        return super().has_permission(request, view)


class SubscriptionsView(ResourceView):
    permission_classes = [MayKeepLists]


class Subscriptions(Resource[Subscription]):
    model = Subscription
    key = "id"
    new = NewSubscription
    answer = record_of(
        SubscriptionBody,
        "A shared subscription and the outcome of its last delivery.",
        name="SubscriptionRecord",
        id=ID,
        failing_since=Annotated[
            str | None,
            Field(
                description="Time from which all deliveries have failed. Null if the last "
                "delivery succeeded."
            ),
        ],
        answer=Annotated[
            str,
            Field(description="Last response from the receiver. Empty before the first delivery."),
        ],
        covers_nothing=Annotated[
            str,
            Field(
                description="Reason why no incident can match the subscription. Empty if some "
                "incidents can match."
            ),
        ],
    )
    missing = "Shared subscription {key} does not exist."
    order = BY_ID
    field_of = {"subscription_name_once": "name"}
    calls = {
        "list": CallText(
            "List shared subscriptions",
            "Returns the shared subscriptions, sorted by id. Subscriptions of individual users are "
            "not included.",
        ),
        "add": CallText(
            "Add a shared subscription",
            "Sonar starts to send notifications for the subscription immediately.",
        ),
        "show": CallText(
            "Get a shared subscription", "Returns the shared subscription with this id."
        ),
        "change": CallText(
            "Change a shared subscription",
            "Omitted fields keep their values. `settings` is replaced as a whole.",
        ),
        "remove": CallText(
            "Delete a shared subscription",
            "Queued and past deliveries of the subscription are also deleted.",
        ),
    }

    def rows(self) -> QuerySet[Subscription]:
        return Subscription.objects.filter(owner=None).prefetch_related("sites")

    def others(self, row: Subscription) -> Json:
        return {
            "sites": [site.name for site in row.sites.all()],
            "quiet_hours": row.quiet_hours,
            "covers_nothing": subscriptions.covers_nothing(row),
        }

    def columns_of(self, row: Subscription, values: Values) -> Values:
        columns = {name: value for name, value in values.items() if name not in BESIDE}
        if values.get("channel", row.channel) != catalogue.EMAIL:
            columns.pop("address", None)
        if values.get("settings"):
            sealed = Subscription(key=row.key, channel=values.get("channel", row.channel))
            subscriptions.seal(sealed, values["settings"])
            columns |= {"secret": sealed.secret}
            columns |= {"address": sealed.address} if sealed.address else {}
        return columns | quiet_columns(values)

    def signature(self, row: Subscription, columns: Values, request: Request) -> Values:
        return {} if row.confirmed_at else {"confirmed_at": timezone.now()}

    def check(self, row: Subscription) -> None:
        """Check the settings, new or stored, against the channel."""
        try:
            values = subscriptions.unseal(row)
        except OtherKeyError:
            sentence = (
                "The settings of the channel were encrypted with another key. Send all settings "
                "again."
            )
            raise wrong("settings", sentence) from None
        for name, sentence in catalogue.describe(row.channel).problems(values).items():
            raise wrong("settings", f"settings.{name}: {sentence}")
        if row.channel == catalogue.EMAIL and (sentence := catalogue.mail_problem(row.address)):
            raise wrong("address", sentence)

    def save_related(self, row: Subscription, values: Values) -> None:
        if "sites" in values:
            row.sites.set(sites_named(values["sites"]))
        if row.scope == Subscription.Scope.SITES and not row.sites.exists():
            raise wrong("sites", "“sites” is empty. If “scope” is “sites”, name at least one site.")
        if not row.enabled:
            subscriptions.forget_unsent([row])


def sites_named(names: list[str]) -> list[Site]:
    rows: dict[str, Any] = {site.name: site for site in Site.objects.filter(name__in=names)}
    for name in names:
        if name not in rows:
            raise wrong("sites", f"{not_registered('sites', name, 'site')}.")
    return list(rows.values())


SUBSCRIPTIONS = Subscriptions()
