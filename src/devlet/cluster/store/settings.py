"""All settings of the embedded cluster."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds. The defaults keep what a Kubernetes API server promises its clients."""

    history_age: float = 300.0  # changes younger than this can still be watched …
    history_events: int = 1_000  # … and at least this many of the newest, however old …
    history_bytes: int = 256 << 20  # … unless the superseded bodies need more disk than this
    compact_every: float = 30.0
    event_ttl: float = 3_600.0  # seconds after its last write, an Event is deleted …
    max_events: int = 20_000  # … and earlier if there are as many newer ones
    expire_every: float = 10.0
    bookmark_every: float = 60.0
    version_wait: float = 3.0  # how long a read waits for a version that is not there yet
    watch_bytes: int = 32 << 20  # of changes that watchers have yet to see; watchers further behind read from disk
    max_object_bytes: int = 3 << 20
    large_object_bytes: int = 256 << 10  # a thread prepares all changes of larger objects
    collect_garbage: bool = True  # off where a kube-controller-manager does it
