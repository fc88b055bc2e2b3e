"""Alertmanager, API v2: each open incident is an alert that is sent again every minute.

Its labels say which one it is, so they hold nothing that changes; figures are annotations. An alert
that Sonar stops sending ends by itself, and one whose incident is closed is sent as resolved.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from sonar.alerting.channels.base import Matter, Target
from sonar.alerting.channels.web import basic, post
from sonar.notation.windows import format_time

ENDS_AFTER = timedelta(minutes=4)
NAMES = {"slow": "SonarSlow", "failing": "SonarFailing", "silent": "SonarSilent"}


class Alertmanager:
    """Tells one Alertmanager, of which a cluster passes it on to the others."""

    def tell(self, matters: Sequence[Matter], target: Target, now: datetime) -> str:
        values = target.settings
        url = values["url"].rstrip("/").removesuffix("/api/v2/alerts") + "/api/v2/alerts"
        body = json.dumps([alert(matter, target, now) for matter in matters]).encode()
        password = values.get("password", "")
        reply = post(url, body, basic(values.get("user", ""), password), password)
        still = sum(matter.closed_at is None for matter in matters)
        return f"{reply.words}, {still} alert{'s fire' if still != 1 else ' fires'}"


def alert(matter: Matter, target: Target, now: datetime) -> dict[str, object]:
    labels = {
        "alertname": NAMES[matter.condition],
        "severity": matter.severity,
        "level": matter.level,
        "source": matter.source,
        "destination": matter.destination,
        "site": matter.site,
        "sonar": target.home,
    }
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {
            "summary": matter.title,
            "description": matter.sentence,
            "check": matter.check,
            **({"error": matter.error} if matter.error else {}),
            "on_it": matter.who,
        },
        "startsAt": format_time(matter.began_at),
        "endsAt": format_time(matter.closed_at or now + ENDS_AFTER),
        "generatorURL": matter.url,
    }
