"""An X.509 proxy certificate with its key in a file: programs are given the path of it."""

import stat
import time

from cryptography import x509
from cryptography.x509 import Certificate

from sonar.credentials.sources.base import CredentialError, Purpose, Secret, StorageToken

KEY = "PRIVATE KEY-----"


class ProxySource:
    def obtain(self, purpose: Purpose) -> StorageToken:
        """Return the path of the file as text; CredentialError if programs would not take it."""
        certificates = self._read(purpose.secret)
        token = StorageToken(
            str(purpose.secret.file()),
            max(each.not_valid_before_utc.timestamp() for each in certificates),
            min(each.not_valid_after_utc.timestamp() for each in certificates),
        )
        if token.left(time.time()) <= 0:
            raise CredentialError("the proxy certificate has expired")
        return token

    def _read(self, secret: Secret) -> list[Certificate]:
        text = secret.read()
        if secret.file().stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise CredentialError("other users can read the file: its mode must be 0600")
        if KEY not in text:
            raise CredentialError("the secret contains no private key")
        try:
            return x509.load_pem_x509_certificates(text.encode())
        except ValueError:
            raise CredentialError("the secret contains no certificate") from None
