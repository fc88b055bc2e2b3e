"""Alertmanager, API v2: each open incident is an alert that is sent again every minute.

Its labels identify it, so they contain nothing that changes; figures are annotations. An alert that
Sonar stops sending expires, and a closed incident is sent as resolved.
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
    """Sends to one Alertmanager, which passes alerts on to the others of its cluster."""

    def tell(self, matters: Sequence[Matter], target: Target, now: datetime) -> str:
        values = target.settings
        url = values["url"].rstrip("/").removesuffix("/api/v2/alerts") + "/api/v2/alerts"
        body = json.dumps([alert(matter, target, now) for matter in matters]).encode()
        password = values.get("password", "")
        reply = post(url, body, basic(values.get("user", ""), password), password)
        still = sum(matter.closed_at is None for matter in matters)
        return f"{reply.words}, {still} alert{'s are' if still != 1 else ' is'} firing"


def alert(matter: Matter, target: Target, now: datetime) -> dict[str, object]:
    labels = {
        "alertname": NAMES[matter.type],
        "severity": matter.severity,
        "scope": matter.scope,
        "source": matter.source,
        "destination": matter.destination,
        "site": matter.site,
        "sonar": target.home,
    }
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {
            "summary": matter.title,
            "description": "\n".join(matter.lines),
            **({"error": matter.error} if matter.error else {}),
            "assignee": matter.assignee,
        },
        "startsAt": format_time(matter.began_at),
        "endsAt": format_time(matter.closed_at or now + ENDS_AFTER),
        "generatorURL": matter.url,
    }
