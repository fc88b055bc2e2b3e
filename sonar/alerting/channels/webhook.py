"""Signed JSON for a webhook; docs/notifications.md describes how the receiver verifies it."""

import hashlib
import hmac
import json
import time
from dataclasses import asdict
from datetime import datetime

from sonar.alerting.channels.base import Message, Target
from sonar.alerting.channels.web import post
from sonar.notation.windows import format_time

VERSION = 1


class Webhook:
    """Posts a message as JSON, with its id, the time and a signature in headers."""

    def send(self, message: Message, target: Target) -> str:
        body = written(message)
        key, stamp = target.settings["key"], str(int(time.time()))
        headers = {
            "X-Sonar-Delivery": message.id,
            "X-Sonar-Timestamp": stamp,
            "X-Sonar-Signature": f"sha256={signature(key, stamp, body)}",
        }
        return post(target.settings["url"], body, headers, key).words


def signature(key: str, stamp: str, body: bytes) -> str:
    """Return HMAC-SHA256, in hex, of the time in seconds, a dot, and the body."""
    return hmac.new(key.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def written(message: Message) -> bytes:
    """Return a message as JSON; the same message gives the same bytes."""
    said = {
        "version": VERSION,
        "id": message.id,
        "kind": message.kind,
        "subject": message.subject,
        "text": message.text,
        "incidents": [asdict(matter) | {"severity": matter.severity} for matter in message.matters],
        "events": [asdict(event) for event in message.events],
    }
    return json.dumps(said, default=as_text, ensure_ascii=False).encode()


def as_text(value: object) -> str:
    if isinstance(value, datetime):
        return format_time(value)
    raise TypeError(type(value))
