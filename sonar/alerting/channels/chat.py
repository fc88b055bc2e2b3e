"""Short texts for channels of Slack and Mattermost: the same JSON, with the markup of each."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from sonar.alerting.channels.base import Message, Target
from sonar.alerting.channels.web import post

MOST_LISTED = 20
SLACK_HOSTS = ("hooks.slack.com", "hooks.slack-gov.com")
"""Where the incoming webhooks of Slack are; every other address is one of Mattermost."""
# What both read as an entity, a link or a mention. A mention needs its letter right after the @.
ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\u200b"})
IN_ADDRESSES = str.maketrans({"&": "&amp;", "|": "%7C", ">": "%3E", ")": "%29"})
URL = re.compile(r"https?://[^\s<>|]+[^\s<>|.,;:!?)\]'\"]")


@dataclass(frozen=True)
class Markup:
    """How a service writes bold text and links, and how its marks are shown as they are.

    ``marks`` finds the characters that it would interpret; ``without_meaning`` writes one.
    """

    bold: str
    link: str
    marks: re.Pattern[str]
    without_meaning: Callable[[re.Match[str]], str]

    def escape(self, text: str) -> str:
        """Write text so that it is shown as it is; its URLs stay links."""
        parts, at = list[str](), 0
        for url in URL.finditer(text):
            parts += [self._escape(text[at : url.start()]), address(url[0])]
            at = url.end()
        return "".join([*parts, self._escape(text[at:])])

    def _escape(self, text: str) -> str:
        return self.marks.sub(self.without_meaning, text.translate(ENTITIES))


def address(url: str) -> str:
    """Write a URL where entities are read, and | or > or ) would end it."""
    return url.translate(IN_ADDRESSES)


# Slack has no escape for its marks, so letters are shown that look like them. Neither service
# reads an underscore within a word: the names of endpoints stay as they are.
SLACK = Markup(
    "*{}*",
    "<{url}|{text}>",
    re.compile(r"[*~`]|(?<!\w)_|_(?!\w)"),
    lambda mark: {"*": "\u2217", "~": "\u223c", "`": "'", "_": "\uff3f"}[mark[0]],
)
MATTERMOST = Markup(
    "**{}**",
    "[{text}]({url})",
    re.compile(r"[\\*~`#|\[\]]|(?<!\w)_|_(?!\w)"),
    lambda mark: f"\\{mark[0]}",
)


class Chat:
    """Posts to the incoming webhook of a channel; its address is the secret."""

    def send(self, message: Message, target: Target) -> str:
        url = target.settings["url"]
        markup = SLACK if urlsplit(url).hostname in SLACK_HOSTS else MATTERMOST
        text = "\n".join(lines(message, markup)).strip()
        body = {"text": text or markup.escape(message.text)}
        headers = {"X-Sonar-Delivery": message.id}
        return post(url, json.dumps(body).encode(), headers).words


def lines(message: Message, markup: Markup = SLACK) -> Iterator[str]:
    """Yield the subject, and the lines of each incident in the order of `Matter.lines`."""
    if not message.matters:
        return
    yield markup.bold.format(markup.escape(message.subject))
    for matter in message.matters[:MOST_LISTED]:
        yield from map(markup.escape, filter(None, [matter.sentence, matter.first_action]))
        yield markup.link.format(url=address(matter.url), text=f"Incident {matter.id}")
        if matter.error:
            yield markup.escape(f"Newest error: {matter.error}")
        if matter.closed_at is None:
            yield markup.escape(f"Assignee: {matter.assignee}")
    if (more := len(message.matters) - MOST_LISTED) > 0:
        yield f"and {more} more"
