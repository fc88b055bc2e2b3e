"""Why a test is made: as scheduled, because somebody ordered it, or to try another way.

An ordered test says how its link is only if it was made as the link's mesh makes its tests. One
made with other settings is an experiment, and so is each test of an Experiment.
"""

from sonar.models import ExperimentStep, Probe, Profile, Schedule

# What of a mesh, and of a test, tells how its tests are made.
SETTINGS = ("mover", "mode", "streams", "tcp_buffer_bytes")


def purpose_of(probe: Probe) -> str:
    """Return the purpose of a test. Two SQL queries at most, none for a scheduled one."""
    if probe.mesh_id is not None:
        return Profile.Purpose.SCHEDULED
    if is_step(probe) or differs_from_meshes(probe):
        return Profile.Purpose.EXPERIMENT
    return Profile.Purpose.ORDERED


def is_step(probe: Probe) -> bool:
    return ExperimentStep.objects.filter(test_id=probe.id).exists()


def differs_from_meshes(probe: Probe) -> bool:
    """Say whether meshes test this link with this size class, and none of them in this way."""
    scheduled = Schedule.objects.filter(
        source=probe.source_id, destination=probe.destination_id, size_class=probe.size_class_id
    )
    of_meshes = set(scheduled.values_list(*(f"mesh__{name}" for name in SETTINGS)))
    return bool(of_meshes) and tuple(getattr(probe, name) for name in SETTINGS) not in of_meshes
