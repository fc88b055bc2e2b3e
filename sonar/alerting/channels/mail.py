"""E-mail: text and HTML, one thread for each incident, sent by the configured mail server."""

import smtplib
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.smtp import EmailBackend
from django.core.mail.message import BadHeaderError

from sonar.alerting.channels.base import ChannelError, Message, Target
from sonar.alerting.channels.web import trust
from sonar.movers.base import MoverError
from sonar.movers.messages import one_line

LONGEST_SUBJECT = 200
CONFIRMATION = "confirmation"


class Mail:
    """Sends to one address, which may be a mailing list."""

    def send(self, message: Message, target: Target) -> str:
        subject = " ".join(f"[Sonar] {message.subject}".split())[:LONGEST_SUBJECT]
        backend = get_connection()
        if settings.SONAR_NOTIFY_CA_BUNDLE and isinstance(backend, EmailBackend):
            backend.ssl_context = trust(settings.SONAR_NOTIFY_CA_BUNDLE)
        mail = EmailMultiAlternatives(
            subject, message.text, settings.DEFAULT_FROM_EMAIL, [target.address],
            headers=headers(message, target), connection=backend,
        )  # fmt: skip
        if message.html:
            mail.attach_alternative(message.html, "text/html")
        try:
            mail.send()
        except (smtplib.SMTPException, OSError, MoverError, BadHeaderError) as error:
            raise ChannelError(f"{settings.EMAIL_HOST} {words(error)}.") from None
        return f"{settings.EMAIL_HOST} accepted the message for {target.address}."


def headers(message: Message, target: Target) -> dict[str, str]:
    """Return the headers that mark repeats, threads and automatic messages."""
    host = urlsplit(target.home).hostname or "sonar"
    named = {
        "Message-ID": f"<{message.id}@{host}>",
        "X-Sonar-Delivery": message.id,
        "Auto-Submitted": "auto-generated",
    }
    if message.kind != CONFIRMATION:  # its only link is the one that confirms
        named["List-Unsubscribe"] = f"<{target.page}>"
    if len(message.matters) == 1:
        # Not the id of a sent message: the first message may be sent again with more in it.
        thread = f"<incident-{message.matters[0].id}.{target.key}@{host}>"
        named |= {"In-Reply-To": thread, "References": thread}
    return named


def words(error: Exception) -> str:
    """Return the reason why the mail server did not accept a message."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        error = smtplib.SMTPResponseException(*next(iter(error.recipients.values())))
    if isinstance(error, smtplib.SMTPResponseException):
        text = error.smtp_error
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        return f"answers {error.smtp_code} {one_line(text, settings.EMAIL_HOST_PASSWORD)}"
    if isinstance(error, TimeoutError):
        return f"did not answer within {settings.EMAIL_TIMEOUT} s"
    said = one_line(str(error), settings.EMAIL_HOST_PASSWORD)
    return f"could not be reached, or it closed the connection: {said or type(error).__name__}"
