"""Secrets that were uploaded, for those who need them: workers, and who looks for them in texts."""

from sonar.credentials.encryption import OtherKeyError, decrypted
from sonar.models import Credential, UploadedSecret
from sonar.notation.windows import format_minute

NOTHING = "the secret was not uploaded: upload the secret on the page of the endpoint"
OTHER_KEY = (
    "the secret was encrypted with a different SONAR_CREDENTIALS_KEY or SONAR_SECRET_KEY; all "
    "processes must use the same key"
)


class NoSecretError(Exception):
    """An uploaded secret that cannot be had; the sentence says why."""


def words(credential: Credential) -> str:
    """Say where the secret of a credential is, who uploaded it, and until when it is valid."""
    if credential.uploaded_at is None:
        return "in a file on the workers that has the same name as the credential"
    kept: UploadedSecret | None = getattr(credential, "uploaded_secret", None)
    if kept is None:
        return "removed after it was uploaded"
    by = f" by {kept.uploaded_by}" if kept.uploaded_by else ""
    end = f", valid until {format_minute(kept.expires_at)}" if kept.expires_at else ""
    return f"uploaded {format_minute(credential.uploaded_at)}{by}{end}; stored encrypted"


def secret_of(credential: Credential) -> str:
    """Return an uploaded secret as text; NoSecretError says why it cannot be had."""
    content = (
        UploadedSecret.objects.filter(credential__name=credential.name)
        .values_list("content", flat=True)
        .first()
    )
    if content is None:
        raise NoSecretError(NOTHING)
    try:
        return decrypted(credential.name, content)
    except OtherKeyError:
        raise NoSecretError(OTHER_KEY) from None


def all_secrets() -> list[str]:
    """Return all uploaded secrets that this process can read. One SQL query."""
    rows = UploadedSecret.objects.order_by().values_list("credential__name", "content")
    secrets = list[str]()
    for name, content in rows:
        try:
            secrets.append(decrypted(name, content))
        except OtherKeyError:  # whoever cannot read it cannot show it to a server either
            continue
    return secrets
