"""WLCG alarms: one document for each message, as AlarmsAndAlerts accepts them by POST."""

import json

from sonar.alerting.channels.base import Message, Target
from sonar.alerting.channels.web import post
from sonar.alerting.channels.webhook import as_text

CATEGORY, SUBCATEGORY = "Networking", "Sonar"
NAMES = {
    "slow": "transfers are slow", "failing": "transfers fail", "silent": "no transfer results",
}  # fmt: skip


class AlarmBus:
    """Posts to an alarm bus, whose readers select by category, event and tags."""

    def send(self, message: Message, target: Target) -> str:
        body = json.dumps(alarm(message, target), default=as_text).encode()
        return post(target.settings["url"], body, {"X-Sonar-Delivery": message.id}).words


def alarm(message: Message, target: Target) -> dict[str, object]:
    first = message.matters[0] if message.matters else None
    is_critical = any(each.severity == "critical" for each in message.matters)
    names = ((each.site, each.source, each.destination) for each in message.matters)
    return {
        "category": CATEGORY,
        "subcategory": SUBCATEGORY,
        "event": NAMES[first.type] if first else message.kind,
        "body": message.text,
        "tags": sorted(set().union(*names) - {""}),
        "level": "critical" if is_critical else "warning",
        "source": {
            "id": message.id,
            "sonar": target.home,
            "incidents": [vars(each) for each in message.matters],
        },
        "details": first.url if first else target.home,
    }
