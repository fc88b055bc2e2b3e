"""From results to a message: a destination dies, and the task that assesses opens an incident."""

from datetime import timedelta

import numpy as np
import pytest
from django.core import mail
from django.db.models import Q
from pytest_django import Settings

from matrix import tasks
from matrix.answers.incidents import endpoint_state
from matrix.answers.incidents.messages import IncidentWords
from sonar.alerting import sending
from sonar.alerting.incidents import CALM
from sonar.models import Condition, Incident
from tests.accuracy import histories
from tests.accuracy.histories import DAY, HOUR, MIDNIGHT
from tests.sonar.alarms import of_person
from tests.stored_histories import StoredHistory, moment

NOW = MIDNIGHT + 15 * HOUR
QUIET = histories.Noise(failed=0.0, scatter=0.15, scatter_sd=0.0, day_sd=0.02, flaky_links=0.0)


@pytest.mark.django_db
def test_a_destination_that_dies_is_one_incident_and_one_message_with_its_error(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    settings.SONAR_URL, settings.EMAIL_HOST = "https://sonar.example.org", "mail.example.org"
    settings.DEFAULT_FROM_EMAIL = "Sonar <sonar@example.org>"
    clock = [moment(NOW)]
    monkeypatch.setattr("django.utils.timezone.now", lambda: clock[0])
    rng = np.random.default_rng(7)
    grid = histories.make_grid(rng, 6, site_sizes=(1,))
    start = NOW - 6 * HOUR
    fault = histories.place_fault(grid, "destination", 3, start, end=NOW)
    every = {"large": 3600}
    history = histories.simulate(rng, grid, NOW - 12 * DAY, NOW + 9 * HOUR, every, [fault], QUIET)
    stored = StoredHistory.of(history)
    of_person("ann")
    stored.store(0, NOW)
    tasks.assess()

    condition, incident = Condition.objects.get(), Incident.objects.get()
    assert (incident.cause, incident.type) == (condition, "failing")
    assert (incident.scope, incident.destination) == ("destination", stored.ends[3])
    assert abs(incident.began_at - moment(start)) <= timedelta(hours=1)
    while sending.send_next(IncidentWords(), lambda: clock[0]):
        pass
    (sent,) = mail.outbox
    assert sent.subject == f"[Sonar] {stored.ends[3]} fails as destination"
    for text in (sent.body, sent.alternatives[0].content):
        assert "connection refused (at the destination)" in text.lower()
        assert "has been failing as destination since" in text
        assert "tests failed." in text

    clock[0] = moment(NOW + 9 * HOUR)
    stored.store(NOW)
    tasks.assess()
    incident.refresh_from_db()
    condition.refresh_from_db()
    assert incident.clear_since == condition.ended_at
    assert (incident.closed_at is None) == (clock[0] - condition.ended_at < CALM)
    (state,) = endpoint_state.states(clock[0], Q(pk=stored.ends[3].pk))
    assert state.destination.condition is None
