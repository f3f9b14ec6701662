"""Fixtures that more than one test file uses."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the checkout; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the real data are not here: no folder ../shared beside the checkout")
    return SHARED


@pytest.fixture(scope="session")
def upstream(shared: Path) -> Path:
    """The EASG annotations, recorded votes and narrations."""
    return shared / "upstream"
