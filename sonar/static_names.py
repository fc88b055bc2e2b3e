"""Names of static files: they change with the contents, so that browsers may keep them for ever."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedNames(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # has no types
    """Write the names into the imports of JavaScript modules, too."""

    support_js_module_import_aggregation = True
    # One more step of each chain of imports is settled in a pass.
    max_post_process_passes = 20
