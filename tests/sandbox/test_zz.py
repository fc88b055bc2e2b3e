import pytest, time
from datetime import timedelta
from sonar.models import *
from sonar.sandbox import first_start, past, past_store, topology
from tests.sonar.world import NOW
from matrix.answers.conditions import words
from matrix.store import conditions
@pytest.mark.django_db
def test_x(monkeypatch):
    registry = topology.registry({site.endpoint: f"http://127.0.0.1/{site.name}" for site in topology.load_sites()})
    first_start.file.load(first_start.yaml.safe_dump(registry, sort_keys=False))
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
    t=time.time(); past_store.make(wait_seconds=0); print("made",time.time()-t)
    for c in conditions.rows(): print("C" if c.confirmed_at else "u", words.sentence(c))
