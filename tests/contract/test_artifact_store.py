"""The artifact store on its two adapters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.artifact_contract import ArtifactStoreContract
from tests.contract.artifact_storages import LocalStorage, MemoryStorage


class TestMemory(ArtifactStoreContract):
    @pytest.fixture
    def storage(self) -> MemoryStorage:
        return MemoryStorage()


class TestLocal(ArtifactStoreContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> LocalStorage:
        return LocalStorage(tmp_path / "data" / "artifacts")
