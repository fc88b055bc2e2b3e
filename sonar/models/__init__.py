"""What Sonar keeps, one file per subject; others import the models from here."""

from sonar.models.aliases import Alias, UnknownAlias
from sonar.models.checks import EndpointCheck
from sonar.models.commissioning import CommissioningRecord, CommissioningSearch, CriteriaSet
from sonar.models.conditions import (
    AssessedDay,
    Assessment,
    Condition,
    ConditionLink,
    ConditionPart,
)
from sonar.models.downtimes import Downtime, DowntimeSource
from sonar.models.events import Annotation, CredentialState
from sonar.models.history import HistoryEntry
from sonar.models.incidents import (
    HeldLevel,
    Incident,
    IncidentEvent,
    IncidentLink,
    Target,
)
from sonar.models.mesh import (
    AllTests,
    Circuit,
    Leftover,
    Mesh,
    MeshInterval,
    Probe,
    RecentRun,
    Schedule,
    Sweep,
    SweepStep,
)
from sonar.models.notifications import LastSent, Notification, Subscription
from sonar.models.registry import Credential, Endpoint, FileRow, RefusedRedirect, Site, SizeClass
from sonar.models.token import SavedView, Token
from sonar.models.topology import Proposal, SourcedValues
from sonar.models.transfer import Flow, NetworkResult, Profile, Transfer
from sonar.models.uploaded_secret import UploadedSecret
from sonar.models.version import DirtyMark, Segment, SignOfLife, Version
