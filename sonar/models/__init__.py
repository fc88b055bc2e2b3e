"""What Sonar keeps, one file per room."""

from sonar.models.annotation import Annotation
from sonar.models.change import Change, ChangeSearch
from sonar.models.credential import Credential
from sonar.models.credential_state import CredentialState
from sonar.models.downtime import Downtime
from sonar.models.endpoint import Endpoint
from sonar.models.experiment import Experiment, ExperimentStep
from sonar.models.flow import Flow
from sonar.models.mesh import Mesh, MeshInterval, Schedule
from sonar.models.network_result import NetworkResult
from sonar.models.outage import Outage
from sonar.models.probe import Circuit, Leftover, Probe, RecentRun
from sonar.models.segment import DirtyMark, Segment
from sonar.models.site import Site
from sonar.models.size_class import SizeClass
from sonar.models.token import SavedView, Token
from sonar.models.transfer import Profile, Transfer
from sonar.models.version import SignOfLife, Version

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
