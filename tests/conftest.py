"""What all tests share."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: where several processes share the tests, none is left with it alone."""
    items.sort(key=lambda item: "test_wheel" not in item.nodeid)
