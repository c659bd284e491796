"""What every implementation of the cluster port has to do, as test classes that take the implementation as a fixture.

A test module gives the fixtures `cluster` (a `Cluster`) and `namespace` (the name of a fresh namespace in which pods
can be created), `anyio_backend` (a string), and subclasses what it wants to run:

    class TestLists(ListContract): ...

    class TestGarbage(GarbageContract):
        collects_garbage = False  # there is no controller manager here

The classes never look inside. Where implementations may differ, a flag of `Contract` says what to expect; the
defaults describe a kube-apiserver with its controller manager.
"""

from devlet.testing.cluster_contract.concurrency import ConcurrencyContract
from devlet.testing.cluster_contract.contract import Contract
from devlet.testing.cluster_contract.conversions import ConversionContract
from devlet.testing.cluster_contract.deletion import DeletionContract
from devlet.testing.cluster_contract.garbage import GarbageContract
from devlet.testing.cluster_contract.lists import ListContract
from devlet.testing.cluster_contract.metadata import MetadataContract
from devlet.testing.cluster_contract.options import OptionContract
from devlet.testing.cluster_contract.ownership import OwnershipContract
from devlet.testing.cluster_contract.patches import PatchContract
from devlet.testing.cluster_contract.pods import PodContract
from devlet.testing.cluster_contract.selectors import SelectorContract
from devlet.testing.cluster_contract.status import StatusContract
from devlet.testing.cluster_contract.verbs import VerbContract
from devlet.testing.cluster_contract.watches import WatchContract

__all__ = [
    "ConcurrencyContract",
    "Contract",
    "ConversionContract",
    "DeletionContract",
    "GarbageContract",
    "ListContract",
    "MetadataContract",
    "OptionContract",
    "OwnershipContract",
    "PatchContract",
    "PodContract",
    "SelectorContract",
    "StatusContract",
    "VerbContract",
    "WatchContract",
]
