"""`python -m sonar.sandbox`: what `make run` runs."""

import sys

from django.core.exceptions import ImproperlyConfigured

try:
    from sonar.sandbox.run import main
except ImproperlyConfigured as error:  # a setting of the environment
    sys.exit(str(error))

sys.exit(main())
