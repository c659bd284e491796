import pytest

from devlet.alloc.features import ALL_FEATURES, Features, Rules
from devlet.errors import InvalidInput


def test_everything_is_on_unless_told_otherwise() -> None:
    assert Features.named({}) == ALL_FEATURES
    assert all(getattr(ALL_FEATURES, field) for field in Features.__dataclass_fields__)


def test_features_have_the_names_of_the_reference() -> None:
    assert Features.named({"AdminAccess": False}) == Features(admin_access=False)
    assert Features.names() == [
        "AdminAccess",
        "PrioritizedList",
        "PartitionableDevices",
        "DeviceTaints",
        "DeviceBindingAndStatus",
        "ConsumableCapacity",
        "ListTypeAttributes",
    ]


def test_an_unknown_feature_is_named_with_those_that_exist() -> None:
    with pytest.raises(InvalidInput, match=r"unknown allocator feature 'Magic': use one of AdminAccess, .*Attributes"):
        Features.named({"Magic": True})


def test_the_reference_has_no_improvement() -> None:
    assert Rules.reference().is_reference
    assert not Rules().is_reference
    assert not Rules(best_fit=False).is_reference
