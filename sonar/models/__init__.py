"""What Sonar keeps, one file per subject."""

from sonar.models.events import Annotation, Change, ChangeSearch, CredentialState, Downtime, Outage
from sonar.models.mesh import (
    Circuit,
    Experiment,
    ExperimentStep,
    Leftover,
    Mesh,
    MeshInterval,
    Probe,
    RecentRun,
    Schedule,
)
from sonar.models.registry import Credential, Endpoint, Site, SizeClass
from sonar.models.token import SavedView, Token
from sonar.models.transfer import Flow, NetworkResult, Profile, Transfer
from sonar.models.version import DirtyMark, Segment, SignOfLife, Version

__all__ = [
    "Annotation",
    "Change",
    "ChangeSearch",
    "Circuit",
    "Credential",
    "CredentialState",
    "DirtyMark",
    "Downtime",
    "Endpoint",
    "Experiment",
    "ExperimentStep",
    "Flow",
    "Leftover",
    "Mesh",
    "MeshInterval",
    "NetworkResult",
    "Outage",
    "Probe",
    "Profile",
    "RecentRun",
    "SavedView",
    "Schedule",
    "Segment",
    "SignOfLife",
    "Site",
    "SizeClass",
    "Token",
    "Transfer",
    "Version",
]
