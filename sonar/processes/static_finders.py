"""Which files of the apps are laid out for the web server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django.core.files.storage import FileSystemStorage

# What no page of Sonar asks for, and would be compressed for seconds: REST framework has pages of
# its own, and the documents of the API come in two looks.
LEFT_OUT = ("rest_framework/*", "drf_spectacular_sidecar/redoc/*")


class AskedFor(AppDirectoriesFinder):
    """The files that come with apps, but for those that are left out."""

    def list(
        self, ignore_patterns: Iterable[str] | None
    ) -> Iterator[tuple[str, FileSystemStorage]]:
        yield from super().list([*(ignore_patterns or ()), *LEFT_OUT])
