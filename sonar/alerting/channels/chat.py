"""A short text to a channel of Mattermost or Slack: both take the same JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sonar.alerting.channels.base import Matter, Message, Target
from sonar.alerting.channels.web import post

MOST_LISTED = 20
# What would call everybody, link to something else, or change how the rest looks.
MEANT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\u200b", "`": "'"})


class Chat:
    """Posts to the incoming webhook of a channel; its address is the secret."""

    def send(self, message: Message, target: Target) -> str:
        text = "\n".join(lines(message)).strip()
        body = {"text": text or message.text.translate(MEANT)}
        headers = {"X-Sonar-Delivery": message.id}
        return post(target.settings["url"], json.dumps(body).encode(), headers).words


def lines(message: Message) -> Iterator[str]:
    """Yield the subject, and each incident with its address."""
    if not message.matters:
        return
    yield f"**{message.subject.translate(MEANT)}**"
    for matter in message.matters[:MOST_LISTED]:
        yield from of_incident(matter)
    if (more := len(message.matters) - MOST_LISTED) > 0:
        yield f"and {more} more"


def of_incident(matter: Matter) -> Iterator[str]:
    yield matter.sentence.translate(MEANT)
    if matter.closed_at is None:
        yield f"Check: {matter.check} On it: {matter.who}.".translate(MEANT)
    yield matter.url
