"""Whatever the package apprise can tell; it is installed by whoever wants it.

It says only whether it worked, and repeats nothing that may have arrived.
"""

from importlib import import_module

from sonar.alerting.channels.base import ChannelError, Message, Target


class ManyServices:
    """Sends to the service of an address of apprise, which holds the secret."""

    def send(self, message: Message, target: Target) -> str:
        apprise = import_module("apprise").Apprise()
        if not apprise.add(target.settings["url"]):
            raise ChannelError("apprise does not know such an address.")
        # Services that read HTML or Markdown get it with their escapes.
        title = f"[Sonar] {message.subject}"
        if not apprise.notify(body=message.text, title=title, body_format="text"):
            raise ChannelError("apprise could not send it; its own log says more.")
        return "apprise sent it."
