"""What the classes of the contract have in common: how implementations may differ, and how long to wait for them."""

import pytest

from devlet.errors import DevletError, InvalidInput


@pytest.mark.anyio
class Contract:
    """Subclasses of `tests.support.cluster_contract` override these flags for what they run against."""

    #: Objects whose owners are gone are deleted by somebody (the reference needs its controller manager for it).
    collects_garbage = True

    #: A few bad requests are answered with an internal error (500) that says nothing about whose fault it was.
    hides_bad_requests = True

    #: A list with `VersionMatch.EXACT` is served for versions of the last minutes, not only for the newest one.
    keeps_snapshots = True

    #: Keys that no schema knows are dropped from objects of built-in kinds.
    drops_unknown_keys = True

    @property
    def bad_request(self) -> type[DevletError]:
        """What is raised for a request that the reference takes for its own fault."""
        return DevletError if self.hides_bad_requests else InvalidInput
