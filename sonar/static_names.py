"""Names of static files: they change with the contents, so that browsers may keep them for ever."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from django.core.files.base import ContentFile, File
from whitenoise.storage import CompressedManifestStaticFilesStorage

# What only who writes a file needs: comments on lines of their own, and what a line begins with.
UNSENT = {
    ".js": re.compile(rb"^ *(//.*)?", re.MULTILINE),
    ".css": re.compile(rb"/\*.*?\*/|^ +", re.MULTILINE | re.DOTALL),
}


class HashedNames(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # has no types
    """Write the names into the imports of JavaScript modules, too."""

    support_js_module_import_aggregation = True
    # One more step of each chain of imports is settled in a pass.
    max_post_process_passes = 20

    def _save(self, name: str, content: File[bytes]) -> str:
        """Leave out of our own files what no browser needs: a fifth of what is sent of them."""
        path = PurePosixPath(name)
        if path.parts[0] in ("js", "css") and path.suffix in UNSENT:
            content = ContentFile(UNSENT[path.suffix].sub(b"", b"".join(content.chunks())))
        saved: str = super()._save(name, content)
        return saved
