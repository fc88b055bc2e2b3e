"""What an older Sonar had is kept: results, notes that all could read, tokens that could store."""

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connection

from matrix.query.filters import Filter
from matrix.store import runs
from sonar import scheduler
from sonar.credentials import rules
from sonar.models import (
    Annotation,
    Credential,
    DirtyMark,
    Endpoint,
    Flow,
    HeldLevel,
    HistoryEntry,
    IncidentEvent,
    Leftover,
    Probe,
    Profile,
    SavedView,
    Schedule,
    Segment,
    SignOfLife,
    Site,
    SizeClass,
    Sweep,
    SweepStep,
    Transfer,
)
from sonar.notation.windows import Window, parse_time
from sonar.people import roles, tokens
from sonar.results import sealing, store
from tests.accounts import account
from tests.api import edges
from tests.conftest import MONTHS
from tests.sonar import alarms, world
from tests.sonar.alarms import incident, subscription
from tests.sonar.migrating import migrate, migrate_to_now, tables

BEFORE = [("sonar", "0002_triggers_and_size_classes")]
BEFORE_ONE_PER_LINK = [("sonar", "0008_company_waiting_circuits")]
BEFORE_CREDENTIALS = [("sonar", "0010_one_open_probe_for_a_link")]
BEFORE_PAUSES = [("sonar", "0013_saved_view")]
BEFORE_POSSIBLE_TIMES = [("sonar", "0024_uploads_of_source_files")]
BEFORE_JOBS_OF_SERVICES = [("sonar", "0047_report_orders")]
BEFORE_TESTS_COUNT = [("sonar", "0050_exchanges")]
BEFORE_CONCURRENT_TESTS = [("sonar", "0061_history_channel")]
BEFORE_SWEEPS = [("sonar", "0067_baselines")]
BEFORE_PURPOSES = [("sonar", "0025_times_of_connections")]
BEFORE_ROLES = [("sonar", "0006_annotation")]
BEFORE_BASELINES = [("sonar", "0066_incident_link_baseline")]
NEW_SITE = "INSERT INTO sonar_site (name, cloud, tier, country) VALUES"
STARTED = datetime(2025, 12, 31, 23, 30, tzinfo=UTC)


# Of an older Sonar: the name of an endpoint's site, its base URL and its credential.
OLDER = [
    ("GLASGOW", "davs://Glasgow.example:1094/data", "uk"),
    ("LANCS", "https://lancs.example/data", "uk"),
    ("RAL", "http://ral.example:8080/data", "-ral_2"),
    ("DESY", "https://[2001:DB8::1]:443/", "de"),
    ("ODD", "https://d\u00e9sy.example/", "odd"),
    ("FREE", "https://free.example/", ""),
]


def write(statement: str, *values: object) -> Any:
    """Send a statement with its values as they stand; return its first row, if it gives any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone() if cursor.description else None


def register_old(site: str, base_url: str, credential: str) -> None:
    """Register an endpoint as the first Sonar did."""
    (identifier,) = write(f"{NEW_SITE} (%s, 'UK', 2, '') RETURNING id", site)
    write(
        "INSERT INTO sonar_endpoint (name, site_id, label, base_url, software, inbound_cap, "
        "outbound_cap, credential, simulated) VALUES (%s, %s, '', %s, '', 2, 2, %s, false)",
        *(f"{site}_DATADISK", identifier, base_url, credential),
    )


def store_first() -> None:
    """Store a result as the first Sonar did."""
    write(
        "INSERT INTO sonar_profile (mover, mode, streams, origin, activity) "
        "VALUES ('fake', '', 1, 'test', '')"
    )
    write(
        "INSERT INTO sonar_transfer SELECT %s, 'done', %s, 2.0, 2000000000, NULL, '[]', "
        "'[]', '', '', false, '', destination.id, profile.id, size.id, source.id "
        "FROM sonar_endpoint source, sonar_endpoint destination, sonar_profile profile, "
        "sonar_sizeclass size WHERE source.name LIKE 'RAL%%' "
        "AND destination.name LIKE 'LANCS%%' AND size.name = 'large'",
        *(UUID(int=7), STARTED),
    )


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_results_and_credentials_of_an_older_sonar_come_along_and_go_back():
    """Every migration is undone and done again; `migrate` goes no way back."""
    new = tables()
    migrate([("sonar", None)])
    migrate(BEFORE)
    try:
        for one in OLDER:
            register_old(*one)
        store_first()
    finally:
        migrate_to_now()
    assert tables() == new
    assert Transfer.objects.get().started_at == STARTED
    assert "sonar_transfer_2025_12" in store.months()
    assert DirtyMark.objects.get().start == STARTED.replace(minute=0)
    assert sealing.seal(datetime(2026, 11, 20, tzinfo=UTC)) == 2
    assert Segment.objects.count() == 2
    check_credentials()
    world.mesh(mover="http-tpc")
    scheduler.claim_due(STARTED)
    assert Schedule.objects.filter(skipped_because="credential").exists()
    migrate(BEFORE_CREDENTIALS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, credential FROM sonar_endpoint")
        assert dict(cursor.fetchall()) == {f"{site}_DATADISK": name for site, _, name in OLDER}
        cursor.execute("SELECT DISTINCT skipped_because FROM sonar_schedule")
        assert ("credential",) not in cursor.fetchall()
        cursor.execute("DELETE FROM sonar_schedule; DELETE FROM sonar_probe")
    migrate(BEFORE)
    migrate_to_now()
    assert Transfer.objects.get().id == UUID(int=7)
    assert DirtyMark.objects.count() == 1
    assert Endpoint.objects.get(name="LANCS_DATADISK").credential.name == "uk"
    store.make_months(MONTHS)


def check_credentials() -> None:
    """A credential is for the hosts that used it."""
    assert dict(Credential.objects.values_list("name", "hosts")) == {
        "uk": ["glasgow.example:1094", "lancs.example:443"],
        "-ral_2": ["ral.example:8080"],
        "de": ["[2001:db8::1]:443"],
        "odd": ["nowhere.invalid"],
    }
    ends = {one.name.partition("_")[0]: one for one in Endpoint.objects.all()}
    assert [str(ends[site].credential or "") for site, _, _ in OLDER] == [row[2] for row in OLDER]
    assert not any(end.lend_credential or end.credential_lent for end in ends.values())
    wrong = {site for site, end in ends.items() if rules.problem(end)}
    assert wrong == {"RAL", "ODD"}
    assert "unencrypted" in rules.problem(ends["RAL"])


def begin_old(number: int, state: str) -> None:
    """Order a test of one link, and begin it, as a Sonar did that began several at once."""
    began = STARTED if state == "running" else None
    write(
        "INSERT INTO sonar_probe (id, source_id, destination_id, size_class_id, bytes, mover, "
        "mode, streams, state, requested_at, sent_at, started_at, deadline, worker, "
        "progress_bytes, waits_because, runs) SELECT %s, source.id, destination.id, size.id, 20, "
        "'fake', 'pull', 1, %s, %s, %s, %s, %s, '', 0, '', 0 FROM sonar_endpoint source, "
        "sonar_endpoint destination, sonar_sizeclass size WHERE source.name LIKE 'RAL%%' "
        "AND destination.name LIKE 'LANCS%%' AND size.name = 'small'",
        *(UUID(int=number), state, STARTED, STARTED, began, began),
    )


TOLD = "2026-11-20T04:00:00Z"


def report_connections() -> None:
    """Store reports with times that nobody can read, as one packet could; and two others."""
    stored = [far for far in edges.BEYOND if not far.endswith("23:59")]  # PostgreSQL has no such
    times = [(TOLD, TOLD, TOLD), (TOLD, TOLD, None)]
    times += [(far, TOLD, TOLD) for far in stored]
    times += [(TOLD, far, TOLD) for far in stored]
    times += [(TOLD, TOLD, far) for far in stored]
    for port, moments in enumerate(times):
        write(
            "INSERT INTO sonar_flow (reporter, scitag, source_address, source_port, "
            "destination_address, destination_port, source_endpoints, destination_endpoints, "
            "started_at, seen_at, ended_at, application, tcp) VALUES ('::1', 139, '::1', %s, "
            "'::1', 1, '{1}', '{2}', %s, %s, %s, '', '{}')",
            *(port, *moments),
        )


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_notes_tokens_tests_pauses_and_reports_of_an_older_sonar_come_along():
    glasgow, _, ral = world.three_endpoints()
    pushing, reading = account(name="cron"), account(name="reader")
    roles.let_ingest(pushing)
    tokens.create(pushing, "push", ["ingest"], 90)
    tokens.create(reading, "look", ["read"], 90)
    pushing.user_permissions.clear()
    world.mesh()
    scheduler.follow_registry(world.NOW)
    glasgow.site.pause(world.NOW, "new firewall", None, None)
    glasgow.site.save()
    scheduler.claim_due(world.NOW)
    paused = Schedule.objects.filter(skipped_because="paused")
    assert paused.count() == 12
    Probe.objects.all().delete()
    try:
        migrate(BEFORE_PAUSES)
        with connection.cursor() as cursor:
            cursor.execute("SELECT DISTINCT skipped_because, skipped_since FROM sonar_schedule")
            assert ("", None) in cursor.fetchall()
        write(f"{NEW_SITE} ('New', '', 2, '')")
        # A Sonar before circuits knows fewer of the other reasons.
        write("UPDATE sonar_schedule SET skipped_because = '', skipped_since = NULL")
        migrate(BEFORE_ROLES)
        write(
            "INSERT INTO sonar_annotation (text, starts_at, created_at, site_id) "
            "VALUES ('new switch', now(), now(), %s)",
            ral.site_id,
        )
        migrate(BEFORE_ONE_PER_LINK)
        for number, state in enumerate(("queued", "running", "queued", "running")):
            begin_old(number, state)
        migrate(BEFORE_POSSIBLE_TIMES)
        report_connections()
    finally:
        migrate_to_now()
    # Notes stay readable, and tokens go on storing results.
    assert Annotation.objects.get().public
    assert roles.own_permissions(pushing) == ["add_transfer"]
    assert roles.own_permissions(reading) == []
    # Of the tests of one link that have begun one stays, and the others wait.
    found = Probe.objects.order_by("id").values_list("state", "started_at")
    assert list(found) == [
        ("waiting", None),
        ("running", STARTED),
        ("waiting", None),
        ("waiting", None),
    ]
    # There were no pauses, and the reasons are said anew.
    assert not any(site.is_paused(world.NOW) for site in Site.objects.all())
    assert not paused.exists()
    # Of reported connections those with times that nobody can read are deleted.
    assert set(Flow.objects.values_list("source_port", "ended_at")) == {
        (0, parse_time(TOLD)),
        (1, None),
    }
    with pytest.raises(IntegrityError, match="flow_times_are_possible"):
        Flow.objects.update(seen_at=datetime.max.replace(tzinfo=UTC))
    # Without a result there is no purpose to find.
    assert not Profile.objects.exists()


def store_old(number: int, link: tuple[str, str], profile: int, **more: object) -> None:
    """Store a result as a Sonar before purposes did."""
    fields = {"state": "done", "error": "", "error_where": "", "worker": "w", "seconds": 2} | more
    names = ("state", "seconds", "error", "error_where", "worker")
    write(
        "INSERT INTO sonar_transfer (id, started_at, state, seconds, error, error_where, worker, "
        "bytes, samples, remote_connections, error_is_permanent, source_id, destination_id, "
        "profile_id, size_class_id) SELECT %s, %s, %s, %s, %s, %s, %s, 2000000000, '[]', '[]', "
        "false, source.id, destination.id, %s, size.id FROM sonar_endpoint source, "
        "sonar_endpoint destination, sonar_sizeclass size "
        "WHERE source.name = %s AND destination.name = %s AND size.name = 'large'",
        *(UUID(int=number), STARTED + number * timedelta(hours=1)),
        *(fields[name] for name in names),
        *(profile, *(f"{name}_DATADISK" for name in link)),
    )


def old_profile(streams: int, mesh: int | None = None) -> int:
    (number,) = write(
        "INSERT INTO sonar_profile (mover, mode, streams, origin, activity, mesh_id, clock) "
        "VALUES ('fake', 'pull', %s, 'test', '', %s, 'request') RETURNING id",
        *(streams, mesh),
    )
    return int(number)


def purposes() -> dict[int, str]:
    rows = Transfer.objects.values_list("id", "profile__purpose")
    return {identifier.int: purpose for identifier, purpose in rows}


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_results_of_an_older_sonar_get_their_purpose_are_sealed_anew_and_go_back():
    glasgow, _, ral = world.three_endpoints()
    made = world.mesh()
    scheduler.follow_registry(world.NOW)
    Schedule.objects.filter(source=ral, destination__name="LANCS_DATADISK").delete()
    tested, untested = ("GLASGOW", "RAL"), ("RAL", "LANCS")
    sweep = Sweep.objects.create(
        source=glasgow, destination=ral, variable="streams", mover="fake", requested_at=STARTED
    )
    SweepStep.objects.create(sweep=sweep, position=0, value="1", test_id=UUID(int=4))
    store.make_months([STARTED, STARTED + timedelta(days=2)])
    migrate(BEFORE_PURPOSES)
    try:
        scheduled, single, several = old_profile(1, made.id), old_profile(1), old_profile(4)
        store_old(1, tested, scheduled)
        store_old(2, tested, single)
        store_old(3, tested, several)
        store_old(4, tested, single)
        store_old(5, untested, several)
        store_old(6, tested, several, worker="")
        given_up = {"state": "failed", "error": "retired", "error_where": "control", "seconds": 0}
        store_old(7, tested, several, worker="", **given_up)
        assert sealing.seal(datetime(2026, 11, 20, tzinfo=UTC))
        assert not DirtyMark.objects.exists()
    finally:
        migrate_to_now()
    found = ["scheduled", "ordered", "sweep", "sweep", "ordered", "", "sweep"]
    assert purposes() == dict(enumerate(found, 1))
    marked = set(DirtyMark.objects.values_list("start", flat=True))
    assert marked == {
        (STARTED + number * timedelta(hours=1)).replace(minute=0) for number in (2, 3, 4, 5, 7)
    }
    whole = Window(STARTED, STARTED + timedelta(days=2))
    for _ in range(2):
        assert sum(run.keys.size for run in runs.read("large", whole, ())) == 4
        asked = (Filter("purpose", "sweep"),)
        assert sum(run.keys.size for run in runs.read("large", whole, asked)) == 3
        sealing.seal(datetime(2026, 11, 20, tzinfo=UTC))
    migrate(BEFORE_PURPOSES)
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, profile_id FROM sonar_transfer ORDER BY id")
        kept = {identifier.int: profile for identifier, profile in cursor.fetchall()}
    assert write("SELECT count(*) FROM sonar_profile") == (3,)
    assert kept == dict(
        enumerate([scheduled, single, several, single, several, several, several], 1)
    )
    migrate_to_now()
    assert purposes()[3] == "sweep"


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_experiments_are_sweeps_with_their_results_and_views_and_tasks_have_new_names():
    glasgow, _, ral = world.three_endpoints()
    user = account(roles.Role.OPERATOR)
    addresses = {
        f"/experiments/{UUID(int=5)}/": f"/sweeps/{UUID(int=5)}/",
        "/links/A/B/experiments/?variable=size": "/links/A/B/sweeps/?variable=size",
        "/sites/experiments/": "/sites/experiments/",
        "/?purpose=experiment&compare.purpose=%21experiment": (
            "/?purpose=sweep&compare.purpose=%21sweep"
        ),
        "/?size=small&purpose=!experiment&vo=experiment": (
            "/?size=small&purpose=!sweep&vo=experiment"
        ),
    }
    migrate(BEFORE_SWEEPS)
    try:
        write(
            "INSERT INTO sonar_experiment (id, source_id, destination_id, variable, mover, mode, "
            "requested_at) VALUES (%s, %s, %s, 'streams', 'fake', '', %s)",
            *(UUID(int=5), glasgow.id, ral.id, STARTED),
        )
        write(
            "INSERT INTO sonar_experimentstep (experiment_id, position, value, test_id) "
            "VALUES (%s, 0, '4', %s)",
            *(UUID(int=5), UUID(int=4)),
        )
        write(
            "INSERT INTO sonar_profile (mover, mode, streams, origin, activity, clock, purpose) "
            "VALUES ('fake', 'pull', 4, 'test', '', 'request', 'experiment')"
        )
        write(
            "INSERT INTO sonar_signoflife (name, kind, seen_at, every_seconds, queues) VALUES "
            "('sweep', 'task', now(), 30, '{}'), ('seal', 'task', now(), 10, '{}'), "
            "('clean', 'worker', now(), 10, '{}')"
        )
        for address in addresses:
            write(
                "INSERT INTO sonar_savedview (user_id, name, address) VALUES (%s, %s, %s)",
                *(user.id, address[:80], address),
            )
    finally:
        migrate_to_now()
    assert Sweep.objects.get().steps.get().test_id == UUID(int=4)
    assert Profile.objects.get().purpose == "sweep"
    signs = set(SignOfLife.objects.values_list("name", flat=True))
    assert signs == {"recovery", "compaction", "clean"}
    views = {view.name: view.address for view in SavedView.objects.all()}
    assert views == {address[:80]: now for address, now in addresses.items()}
    migrate(BEFORE_SWEEPS)
    assert write("SELECT purpose FROM sonar_profile") == ("experiment",)
    migrate_to_now()
    assert Profile.objects.get().purpose == "sweep"


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_results_that_fts_made_for_an_older_sonar_have_no_mode_and_its_root_files_are_deleted():
    glasgow, lancs, _ = world.three_endpoints()
    Endpoint.objects.filter(pk=glasgow.pk).update(base_url="root://glasgow.example//data")
    migrate(BEFORE_JOBS_OF_SERVICES)
    try:
        for mover, mode, origin, streams in (
            ("fts3", "pull", "test", 1),
            ("fts3", "pull", "test", 2),
            ("fts3", "", "test", 2),  # an import that does not say
            ("fts3", "push", "production", 1),
            ("http-tpc", "pull", "test", 1),
        ):
            write(
                "INSERT INTO sonar_profile (mover, mode, streams, origin, activity, clock) "
                "VALUES (%s, %s, %s, %s, '', 'service')",
                *(mover, mode, streams, origin),
            )
        for end in (glasgow, lancs):
            write(
                "INSERT INTO sonar_leftover "
                "(endpoint_id, path, mover, since, next_try, tries, error) "
                "VALUES (%s, 'sonar/incoming/1', 'fts3', now(), now(), 0, '')",
                end.pk,
            )
    finally:
        migrate_to_now()
    rows = Profile.objects.order_by("id").values_list("mover", "mode", "origin", "streams")
    assert list(rows) == [
        ("fts3", "", "test", 1),
        ("fts3", "pull", "test", 2),
        ("fts3", "", "test", 2),
        ("fts3", "push", "production", 1),
        ("http-tpc", "pull", "test", 1),
    ]
    movers = dict(Leftover.objects.values_list("endpoint", "mover"))
    assert movers == {glasgow.pk: "xrootd", lancs.pk: "fts3"}
    assert set(Leftover.objects.values_list("remote_id", flat=True)) == {""}


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_the_past_of_an_older_sandbox_becomes_tests_and_other_imports_stay_what_they_are():
    def origins() -> list[tuple[str, str]]:
        return list(Profile.objects.order_by("id").values_list("activity", "origin"))

    made_up = store.profile_fields(STARTED)
    past = str(made_up["activity"])
    migrate(BEFORE_TESTS_COUNT)
    try:
        for activity, mover in ((past, "fake"), ("", "fake"), ("", "fts")):
            write(
                "INSERT INTO sonar_profile (mover, mode, streams, origin, activity, clock) "
                "VALUES (%s, '', 1, 'external', %s, '')",
                *(mover, activity),
            )
        before = [(past, "external"), ("", "external"), ("", "external")]
        assert origins() == before
        migrate_to_now()
        assert origins() == [(past, "test"), *before[1:]]
        migrate(BEFORE_TESTS_COUNT)
        assert origins() == before
    finally:
        migrate_to_now()


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_results_and_views_of_an_older_sonar_say_which_tests_were_concurrent():
    user = account(name="anna")
    longest = f"/?beside=0&tier={'1' * 1984}"
    views = {
        "/": "/",
        "/?beside=0&size=large": "/?concurrent=none&size=large",
        "/table/?beside=%210": "/table/?concurrent=!none",
        "/?compare.beside=some": "/?compare.concurrent=some",
        "/links/1/2/?besides=0&q=beside": "/links/1/2/?besides=0&q=beside",
        longest: longest,
    }
    migrate(BEFORE_CONCURRENT_TESTS)
    try:
        for number, address in enumerate(views):
            SavedView.objects.create(user=user, name=str(number), address=address)
        for beside in (0, 1, None):
            write(
                "INSERT INTO sonar_profile (mover, mode, streams, origin, activity, beside) "
                "VALUES ('fake', '', 1, 'test', '', %s)",
                beside,
            )
    finally:
        migrate_to_now()
    addresses = SavedView.objects.order_by("id").values_list("address", flat=True)
    assert list(addresses) == list(views.values())
    concurrent = Profile.objects.order_by("id").values_list("concurrent", flat=True)
    assert list(concurrent) == [0, 1, None]
    migrate(BEFORE_CONCURRENT_TESTS)
    assert list(addresses.all())[1] == "/?beside=0&size=large"
    migrate_to_now()


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_accepted_rates_of_an_older_sonar_are_baselines():
    source, destination = (world.endpoint(name) for name in ("RAL", "LANCS"))
    anna, size = account(roles.Role.OPERATOR, name="anna"), SizeClass.objects.first()
    saved = {
        "one": ("/history/?kind=new+normal&who=anna", "/history/?kind=baseline&who=anna"),
        "two": ("/history/?who=anna&kind=new%20normal", "/history/?who=anna&kind=baseline"),
        "three": ("/history/?name=new+normal", "/history/?name=new+normal"),
    }
    row, told = incident(destination), subscription()
    migrate(BEFORE_BASELINES)
    try:
        write(
            "INSERT INTO sonar_heldlevel (source_id, destination_id, size_class_id, rate, since, "
            "by_id, note) VALUES (%s, %s, %s, 5e6, now(), %s, 'a new route')",
            *(source.pk, destination.pk, size.pk, anna.pk),
        )
        write("UPDATE sonar_incidentevent SET kind = 'new normal' WHERE incident_id = %s", row.pk)
        write(
            "INSERT INTO sonar_notification (subscription_id, incident_id, kind, state, events, "
            "kinds, missed, urgent, together, created_at, due_at, answer) VALUES (%s, %s, "
            "'incident', 'sent', '{1,2}', '{opened,\"new normal\"}', 0, false, false, now(), "
            "now(), '')",
            *(told.pk, row.pk),
        )
        for name, (old, _) in saved.items():
            SavedView.objects.create(user=anna, name=name, address=old)
    finally:
        migrate_to_now()
    assert HistoryEntry.objects.get(kind="baseline").changes["note"] == [None, "a new route"]
    assert [event.type for event in row.events.all()] == ["accepted"]
    assert row.notifications.get().event_types == ["opened", "accepted"]
    views = dict(SavedView.objects.values_list("name", "address"))
    assert views == {name: new for name, (_, new) in saved.items()}
    HeldLevel.objects.create(
        source=destination, destination=source, size_class=size, rate=1e6, since=STARTED, by=anna
    )
    assert HistoryEntry.objects.filter(kind="baseline").count() == 2


RENAMING = import_module("sonar.migrations.0071_scope_and_type")


@pytest.mark.parametrize(
    ("before", "since"),
    [
        ("/events/?kind=slower&level=site", "/events/?type=slower&scope=site"),
        ("/sonar/events/?certain=any&site=!RAL", "/sonar/events/?significant=any&site=!RAL"),
        ("/incidents/?level=link&condition=slow", "/incidents/?scope=link&type=slow"),
        (
            "/changes/?level=slower&kind=link&sure=any&factor=2",
            "/events/?type=slower&scope=link&significant=any&factor=2",
        ),
        ("/history/?kind=site", "/history/?kind=site"),
        ("/incidents/12/", "/incidents/12/"),
    ],
)
def test_saved_views_of_events_and_incidents_keep_their_question(before: str, since: str):
    assert RENAMING.renamed_address(before) == since


@pytest.mark.django_db
def test_updates_of_incidents_and_the_history_of_subscriptions_get_the_new_names():
    row = alarms.incident(world.three_endpoints()[0])
    old = {"level": "site", "condition": "slow", "factor": None, "links": 3, "of_links": 4}
    IncidentEvent.objects.update(values=old)
    changes = {"levels": [[], ["link"]], "conditions": [None, ["slow"]], "cap": [10, 5]}
    facts = {"at": STARTED, "channel": "page", "who": "anna", "token": "", "key": 1, "name": "x"}
    entries = [
        HistoryEntry.objects.create(kind=kind, action="changed", changes=changes, **facts)
        for kind in ("subscription", "site")
    ]
    write(RENAMING.UPDATES)
    write(RENAMING.HISTORY)
    assert row.events.get().values == {
        "scope": "site", "type": "slow", "factor": None, "links": 3, "of_links": 4
    }  # fmt: skip
    for entry in entries:
        entry.refresh_from_db()
    assert entries[0].changes == {
        "incident_scopes": [[], ["link"]], "incident_types": [None, ["slow"]], "cap": [10, 5]
    }  # fmt: skip
    assert entries[1].changes == changes
