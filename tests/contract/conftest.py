"""The contract lives in the package: have its asserts explained like those of the tests."""

import pytest

pytest.register_assert_rewrite("devlet.testing.cluster_contract")
