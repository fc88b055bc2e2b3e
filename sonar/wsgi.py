"""The WSGI application: `gunicorn sonar.wsgi`."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")

application = get_wsgi_application()
