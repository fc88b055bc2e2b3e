"""`python -m sonar.sandbox`: what `make run` runs."""

from __future__ import annotations

import sys

from sonar.sandbox.run import main

sys.exit(main())
