"""Services that the optional package apprise supports.

The package reports only success or failure, so a message is sent at most once.
"""

from importlib import import_module

from sonar.alerting.channels.base import ChannelError, Message, Target


class ManyServices:
    """Sends to the service of an Apprise URL, which contains the secret."""

    def send(self, message: Message, target: Target) -> str:
        apprise = import_module("apprise").Apprise()
        if not apprise.add(target.settings["url"]):
            raise ChannelError(
                "Apprise does not support this URL. Use a URL from the Apprise documentation."
            )
        # For services that read HTML or Markdown, the package adds the escapes.
        title = f"[Sonar] {message.subject}"
        if not apprise.notify(body=message.text, title=title, body_format="text"):
            raise ChannelError(
                "Apprise could not send the message. See the worker log for the reason."
            )
        return "Apprise sent the message."
