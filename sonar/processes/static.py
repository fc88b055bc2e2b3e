"""Static files: which are sent, and names that change with the contents, to be kept for ever."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath

import brotli
from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

# What no page of Sonar asks for, and would be compressed for seconds: REST framework has pages of
# its own, and the documents of the API come in two looks.
LEFT_OUT = ("rest_framework/*", "drf_spectacular_sidecar/redoc/*")


class AskedFor(AppDirectoriesFinder):
    """The files that come with apps, but for those that are left out."""

    def list(
        self, ignore_patterns: Iterable[str] | None
    ) -> Iterator[tuple[str, FileSystemStorage]]:
        yield from super().list([*(ignore_patterns or ()), *LEFT_OUT])


# What only who writes a file needs: comments on lines of their own, and what a line begins with.
UNSENT = {
    ".js": re.compile(rb"^ *(//.*)?", re.MULTILINE),
    ".css": re.compile(rb"/\*.*?\*/|^ +", re.MULTILINE | re.DOTALL),
}
_, IMPORTS = CompressedManifestStaticFilesStorage._js_module_import_aggregation_patterns
# Of 11: half of the time for files that are larger by 1.6 %.
QUALITY = 10


class QuickCompressor(Compressor):  # type: ignore[misc]  # has no types
    """Compress as a first start does, which somebody waits for."""

    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        compressed: bytes = brotli.compress(data, quality=QUALITY)
        return compressed


def as_sent(name: str, content: bytes) -> bytes:
    """Leave out of our own files what no browser needs: a fifth of what is sent of them."""
    path = PurePosixPath(name)
    if path.parts[0] in ("js", "css") and path.suffix in UNSENT:
        return UNSENT[path.suffix].sub(b"", content)
    return content


class HashedNames(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # has no types
    """Write the names into the imports of JavaScript modules, too."""

    support_js_module_import_aggregation = True
    # Only our own import others: to search libraries of megabytes for imports takes 5 s.
    _js_module_import_aggregation_patterns = ("js/*.js", IMPORTS)
    # One more step of each chain of imports is settled in a pass.
    max_post_process_passes = 20

    @lru_cache(maxsize=256)  # noqa: B019 - there is one storage for each process
    def url(self, name: str, force: bool = False) -> str:
        """Return the address of a file; each page has some thirty, and they stay as they are."""
        address: str = super().url(name, force)
        return address

    def create_compressor(self, **options: object) -> Compressor:
        return QuickCompressor(**options)

    def _save(self, name: str, content: File[bytes]) -> str:
        content = ContentFile(as_sent(name, b"".join(content.chunks())))
        saved: str = super()._save(name, content)
        return saved
