import pytest

from devlet.errors import InvalidInput
from devlet.plugins.resource_names import check


@pytest.mark.parametrize("name", ["vendor.com/gpu", "a/b", "vendor.com/Gpu_1.x-y", f"v.com/{'x' * 63}"])
def test_a_name_in_the_vendors_domain_is_accepted(name: str) -> None:
    check(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpu",
        "/gpu",
        "vendor.com/",
        "kubernetes.io/gpu",
        "x.kubernetes.io/gpu",
        "requests.vendor.com/gpu",
        "Vendor.com/gpu",
        "vendor.com/a/b",
        "vendor.com/-gpu",
        f"vendor.com/{'x' * 64}",
        f"{'a' * 245}/gpu",  # with `requests.` in front these are too many
        "vendor.com/gpu\n",
    ],
)
def test_any_other_name_is_refused_with_the_name_in_quotes(name: str) -> None:
    with pytest.raises(InvalidInput, match=r'^the ResourceName ".*" is invalid$'):
        check(name)


def test_a_very_long_name_is_cut_in_the_text() -> None:
    with pytest.raises(InvalidInput) as refused:
        check("x" * 100_000)
    assert len(str(refused.value)) < 500
