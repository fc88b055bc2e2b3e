"""`python -m sonar.sandbox`: what `make run` runs."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured

# Messages lead to the pages that it serves: settings read this when they are imported. With
# SONAR_PATH, a proxy serves the pages, at an address that only its administrator knows.
if not os.environ.get("SONAR_URL") and not os.environ.get("SONAR_PATH"):
    os.environ["SONAR_URL"] = f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"
try:
    from sonar.sandbox.run import main
except ImproperlyConfigured as error:  # a setting of the environment
    sys.exit(str(error))

sys.exit(main())
