"""The artifact store on its three adapters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.artifact_contract import ArtifactStoreContract
from tests.contract.artifact_storages import LocalStorage, MemoryStorage, S3Storage
from tests.support.s3_service import S3Service, running_s3_service, speak_to
from tests.support.scale import scale


@pytest.fixture(scope="module")
def service() -> Iterator[S3Service]:
    with running_s3_service() as service:
        yield service


class TestMemory(ArtifactStoreContract):
    @pytest.fixture
    def storage(self) -> MemoryStorage:
        return MemoryStorage()


class TestLocal(ArtifactStoreContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> LocalStorage:
        return LocalStorage(tmp_path / "data" / "artifacts")


class TestS3(ArtifactStoreContract):
    races = scale(50, 1000)

    @pytest.fixture
    def storage(self, service: S3Service, monkeypatch: pytest.MonkeyPatch) -> S3Storage:
        speak_to(monkeypatch, service)
        return S3Storage(service.new_bucket())
