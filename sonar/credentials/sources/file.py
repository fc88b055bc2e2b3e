"""A bearer token in a file, which somebody else renews in place: read anew each time."""

import time

from sonar.credentials.sources.base import CredentialError, Purpose, StorageToken
from sonar.credentials.sources.unverified import lifetime_of


class FileSource:
    def obtain(self, purpose: Purpose) -> StorageToken:
        """Return the token; CredentialError for one that says that it has expired."""
        text, now = purpose.secret.read(), time.time()
        began_at, expires_at = lifetime_of(text)
        token = StorageToken(text, began_at or now, expires_at)
        if token.left(now) <= 0:
            raise CredentialError("the token has expired")
        return token
