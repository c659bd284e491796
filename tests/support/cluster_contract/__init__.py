"""What every implementation of the cluster port has to do, as test classes that take the implementation as a fixture.

A test module gives the fixtures `cluster` (a `Cluster`) and `namespace` (the name of a fresh namespace in which pods
can be created), `anyio_backend` (a string), and subclasses what it wants to run:

    class TestLists(ListContract): ...

    class TestGarbage(GarbageContract):
        collects_garbage = False  # there is no controller manager here

The classes never look inside. Where implementations may differ, a flag of `Contract` says what to expect; the
defaults describe a kube-apiserver with its controller manager.
"""

from tests.support.cluster_contract.concurrency import ConcurrencyContract
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.conversions import ConversionContract
from tests.support.cluster_contract.deletion import DeletionContract
from tests.support.cluster_contract.garbage import GarbageContract
from tests.support.cluster_contract.lists import ListContract
from tests.support.cluster_contract.metadata import MetadataContract
from tests.support.cluster_contract.options import OptionContract
from tests.support.cluster_contract.ownership import OwnershipContract
from tests.support.cluster_contract.patches import PatchContract
from tests.support.cluster_contract.pods import PodContract
from tests.support.cluster_contract.selectors import SelectorContract
from tests.support.cluster_contract.status import StatusContract
from tests.support.cluster_contract.verbs import VerbContract
from tests.support.cluster_contract.watches import WatchContract

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
