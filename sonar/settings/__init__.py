"""Settings, and the only reader of the environment; docs/settings.md lists every variable.

A bad value stops the start with one sentence that names the variable and what is allowed. There is
a module for each subject, and here is what all of them set.
"""

from sonar.settings.api import *
from sonar.settings.application import *
from sonar.settings.databases import *
from sonar.settings.environment import *
from sonar.settings.log import *
from sonar.settings.login import *
from sonar.settings.notifications import *
from sonar.settings.queues import *
from sonar.settings.sources import *
from sonar.settings.storage import *
from sonar.settings.web import *
from sonar.settings.work import *
