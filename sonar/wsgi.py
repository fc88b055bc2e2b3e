"""The WSGI application; sonar/gunicorn_conf.py says how gunicorn serves it."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
# The web is asked by anyone, so it has limits and shares connections; commands have neither.
os.environ.setdefault("SONAR_STATEMENT_SECONDS", "30")
os.environ.setdefault("SONAR_DATABASE_POOL", "8")
os.environ.setdefault("SONAR_RATE_ANONYMOUS", "300/min")
os.environ.setdefault("SONAR_RATE_ACCOUNT", "1200/min")

application = get_wsgi_application()
