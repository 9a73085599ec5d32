"""What every artifact store promises, whatever adapter it stands on.

Another adapter proves itself by a subclass that gives the fixture `storage` (`test_artifact_store.py` shows three).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import combinations
from threading import Barrier

import pytest

from dagbok.events.errors import ArtifactDamaged, ArtifactNotFound, ArtifactTooLarge, InvalidInput
from dagbok.projections.artifacts.blobs import BlobStat
from dagbok.projections.artifacts.orphans import GRACE_S, OrphanReport, Reference, collect_orphans
from dagbok.projections.artifacts.port import ArtifactKey, ArtifactStore
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS, Scope, blob_name
from tests.contract.artifact_storages import Storage
from tests.support.scale import scale

ACME = Scope("acme", "docs")
DATA = b"forty-two pages of careful findings"
SHA = sha256(DATA).hexdigest()
NAME = blob_name(ACME, SHA)

ODD_SCOPES = [
    Scope(tenant, project)
    for tenant, project in [
        ("acme", "docs"),
        ("docs", "acme"),
        ("acme", "Docs"),
        ("Acme", "docs"),
        ("ACME", "docs"),
        ("..", "docs"),
        (".", "docs"),
        ("acme", ".."),
        ("acme/docs", "x"),
        ("acme", "docs/x"),
        ("/etc", "passwd"),
        ("acme\\docs", "x"),
        ("acme\0", "docs"),
        ("acme\n", "docs"),
        ("acme ", "docs"),
        ("acme.", "docs"),
        (".acme", "docs"),
        ("acme~", "docs"),
        ("~", "~"),
        ("é", "docs"),
        ("e\u0301", "docs"),
        ("\ud800", "docs"),
        ("?", "docs"),
        ("a" * 64, "docs"),
        ("a" * 65, "docs"),
        ("a" * 128, "docs"),
        ("a" * 5000, "docs"),
        (SHA[:2], SHA),
    ]
]


def nobody() -> list[Reference]:
    return []


class ArtifactStoreContract:
    """Subclasses give `storage`; each test gets a fresh one. `races`: how often a race is run, fewer where each is
    slow."""

    races = scale(200, 4000)

    @pytest.fixture
    def storage(self) -> Storage:
        raise NotImplementedError

    @pytest.fixture
    def store(self, storage: Storage) -> ArtifactStore:
        return ArtifactStore(storage.blobs())

    # Putting and getting

    @pytest.mark.parametrize("data", [b"", b"x", DATA, bytes(range(256)) * 9000], ids=["empty", "byte", "text", "2 MB"])
    def test_what_was_put_is_read_back(self, store: ArtifactStore, data: bytes) -> None:
        key = store.put(ACME, data)
        assert key == ArtifactKey(sha256(data).hexdigest(), len(data))
        assert store.get(ACME, key.sha256, key.size_bytes) == data

    def test_another_opening_of_the_same_storage_reads_it(self, storage: Storage, store: ArtifactStore) -> None:
        store.put(ACME, DATA)
        assert ArtifactStore(storage.blobs()).get(ACME, SHA, len(DATA)) == DATA

    def test_the_same_bytes_again_are_the_same_artifact(self, store: ArtifactStore) -> None:
        assert store.put(ACME, DATA) == store.put(ACME, DATA)
        assert [blob.name for blob in store.list()] == [NAME]

    def test_the_same_bytes_again_make_it_young(self, storage: Storage, store: ArtifactStore) -> None:
        store.put(ACME, DATA)
        storage.pass_time(1000)
        before_ms = storage.now_ms() - 500_000
        assert [blob.modified_ms < before_ms for blob in store.list()] == [True]
        store.put(ACME, DATA)
        assert [blob.modified_ms < before_ms for blob in store.list()] == [False]

    def test_a_bound_store_is_the_same_store(self, store: ArtifactStore) -> None:
        chunks = store.within(SNAPSHOT_CHUNKS)
        key = chunks.put(DATA)
        assert chunks.exists(key.sha256)
        assert chunks.get(key.sha256, key.size_bytes) == store.get(SNAPSHOT_CHUNKS, SHA, len(DATA)) == DATA

    def test_many_threads_may_put_and_read_the_same_bytes(self, store: ArtifactStore) -> None:
        data, threads = DATA * 10_000, 8
        start = Barrier(threads)

        def put_and_get(_: int) -> bytes:
            start.wait()
            key = store.put(ACME, data)
            return store.get(ACME, key.sha256, key.size_bytes)

        with ThreadPoolExecutor(threads) as pool:
            assert all(read == data for read in pool.map(put_and_get, range(threads)))
        assert [blob.size_bytes for blob in store.list()] == [len(data)]

    # The size limit

    def test_the_limit_itself_is_accepted(self, storage: Storage) -> None:
        store = ArtifactStore(storage.blobs(), max_size_bytes=len(DATA))
        assert store.put(ACME, DATA).size_bytes == len(DATA)

    def test_one_byte_more_is_refused_and_stores_nothing(self, storage: Storage) -> None:
        store = ArtifactStore(storage.blobs(), max_size_bytes=len(DATA) - 1)
        with pytest.raises(ArtifactTooLarge, match=str(len(DATA))):
            store.put(ACME, DATA)
        assert list(store.list()) == []

    def test_a_lower_limit_hides_nothing(self, storage: Storage, store: ArtifactStore) -> None:
        store.put(ACME, DATA)
        assert ArtifactStore(storage.blobs(), max_size_bytes=1).get(ACME, SHA, len(DATA)) == DATA

    # Scope

    def test_absent_is_not_found(self, store: ArtifactStore) -> None:
        with pytest.raises(ArtifactNotFound):
            store.get(ACME, SHA, len(DATA))
        assert not store.exists(ACME, SHA)
        assert store.stat(ACME, SHA) is None
        assert not store.delete(ACME, SHA)

    @pytest.mark.parametrize("foreign", [Scope("acme", "other"), Scope("other", "docs"), Scope("docs", "acme")])
    def test_a_foreign_artifact_is_not_found(self, store: ArtifactStore, foreign: Scope) -> None:
        store.put(ACME, DATA)
        with pytest.raises(ArtifactNotFound):
            store.get(foreign, SHA, len(DATA))
        assert not store.exists(foreign, SHA)
        assert not store.delete(foreign, SHA)
        assert list(store.list(foreign)) == []
        assert store.exists(ACME, SHA)

    def test_odd_scopes_work_and_stay_apart(self, store: ArtifactStore) -> None:
        for number, scope in enumerate(ODD_SCOPES):
            assert not store.exists(scope, sha256(b"%d" % number).hexdigest())
            store.put(scope, b"%d" % number)
        for number, scope in enumerate(ODD_SCOPES):
            assert store.get(scope, sha256(b"%d" % number).hexdigest(), len(b"%d" % number)) == b"%d" % number
            assert len(list(store.list(scope))) == 1
        for one, other in combinations(ODD_SCOPES, 2):
            assert one.place.casefold() != other.place.casefold()

    @pytest.mark.parametrize(("tenant", "project"), [("", "docs"), ("acme", "")])
    def test_a_scope_names_tenant_and_project(self, tenant: str, project: str) -> None:
        with pytest.raises(InvalidInput):
            Scope(tenant, project)

    @pytest.mark.parametrize("wrong", ["", "..", SHA[:63], SHA + "0", SHA.upper(), f"../{SHA}", f"{SHA}\n", "z" * 64])
    def test_what_is_no_hash_names_nothing(self, store: ArtifactStore, wrong: str) -> None:
        store.put(ACME, DATA)
        with pytest.raises(ArtifactNotFound):
            store.get(ACME, wrong, len(DATA))
        assert not store.exists(ACME, wrong)
        assert not store.delete(ACME, wrong)

    # Damage

    @pytest.mark.parametrize(
        "stored", [b"F" + DATA[1:], DATA[:-1], DATA + b"!", b""], ids=["altered", "shorter", "longer", "emptied"]
    )
    def test_damaged_bytes_are_never_read(self, storage: Storage, store: ArtifactStore, stored: bytes) -> None:
        store.put(ACME, DATA)
        storage.overwrite(NAME, stored)
        with pytest.raises(ArtifactDamaged):
            store.get(ACME, SHA, len(DATA))

    @pytest.mark.parametrize("stored", [b"F" + DATA[1:], DATA[:-1], DATA + b"!", b""])
    def test_the_right_bytes_repair_a_damaged_artifact(
        self, storage: Storage, store: ArtifactStore, stored: bytes
    ) -> None:
        store.put(ACME, DATA)
        storage.overwrite(NAME, stored)
        store.put(ACME, DATA)
        assert store.get(ACME, SHA, len(DATA)) == DATA

    @pytest.mark.parametrize("size_bytes", [-(2**40), -1, 0, len(DATA) - 1, len(DATA) + 1, 2**40])
    def test_a_wrong_length_is_damage(self, store: ArtifactStore, size_bytes: int) -> None:
        store.put(ACME, DATA)
        with pytest.raises(ArtifactDamaged):
            store.get(ACME, SHA, size_bytes)

    # Listing and deleting

    def test_a_listing_tells_size_and_age(self, storage: Storage, store: ArtifactStore) -> None:
        start_ms = storage.now_ms()
        store.put(ACME, DATA)
        (blob,) = store.list(ACME)
        assert (blob.name, blob.sha256, blob.size_bytes) == (NAME, SHA, len(DATA))
        assert start_ms - 2000 <= blob.modified_ms <= storage.now_ms() + 2000
        assert store.stat(ACME, SHA) == blob

    def test_what_is_no_artifact_is_not_listed(self, storage: Storage, store: ArtifactStore) -> None:
        store.put(ACME, DATA)
        for name in not_ours():
            storage.overwrite(name, b"somebody else's")
        assert [blob.name for blob in store.list()] == [NAME]
        assert [blob.name for blob in store.list(ACME)] == [NAME]

    def test_deleting_removes_one_artifact_of_one_scope(self, store: ArtifactStore) -> None:
        other = Scope("acme", "other")
        kept = store.put(ACME, b"kept")
        store.put(other, DATA)
        store.put(ACME, DATA)
        assert store.delete(ACME, SHA)
        assert not store.delete(ACME, SHA)
        assert not store.exists(ACME, SHA)
        assert store.get(other, SHA, len(DATA)) == DATA
        assert store.get(ACME, kept.sha256, kept.size_bytes) == b"kept"

    # Orphans

    def test_only_what_is_old_and_unreferenced_is_removed(self, storage: Storage, store: ArtifactStore) -> None:
        referenced, orphan = store.put(ACME, b"referenced"), store.put(ACME, b"orphan")
        storage.pass_time()
        young = store.put(ACME, b"young")

        report = collect_orphans(store, lambda: [(ACME, referenced.sha256)], now_ms=storage.now_ms(), dry_run=False)

        assert [blob.sha256 for blob in report.orphans] == [orphan.sha256]
        assert (report.listed, report.young, report.size_bytes) == (3, 1, len(b"orphan"))
        assert {blob.sha256 for blob in store.list()} == {referenced.sha256, young.sha256}

    def test_without_being_told_it_removes_nothing_and_reports_the_same(
        self, storage: Storage, store: ArtifactStore
    ) -> None:
        store.put(ACME, DATA)
        storage.pass_time()
        report = collect_orphans(store, nobody, now_ms=storage.now_ms())
        assert report.dry_run
        assert [blob.name for blob in report.orphans] == [NAME]
        assert store.exists(ACME, SHA)

    def test_a_reference_protects_its_own_scope_only(self, storage: Storage, store: ArtifactStore) -> None:
        other = Scope("acme", "other")
        store.put(ACME, DATA)
        store.put(other, DATA)
        storage.pass_time()
        collect_orphans(store, lambda: [(other, SHA)], now_ms=storage.now_ms(), dry_run=False)
        assert not store.exists(ACME, SHA)
        assert store.exists(other, SHA)

    def test_artifacts_of_odd_scopes_are_protected_too(self, storage: Storage, store: ArtifactStore) -> None:
        for scope in ODD_SCOPES:
            store.put(scope, DATA)
        storage.pass_time()
        roots = [(scope, SHA) for scope in ODD_SCOPES[1:]]
        collect_orphans(store, lambda: roots, now_ms=storage.now_ms(), dry_run=False)
        assert [store.exists(scope, SHA) for scope in ODD_SCOPES] == [False] + [True] * len(roots)

    def test_roots_are_asked_after_the_listing(self, storage: Storage, store: ArtifactStore) -> None:
        """So a reference that was written while the collection listed still counts."""
        store.put(ACME, DATA)
        storage.pass_time()
        listed: list[str] = []

        class Listening(ArtifactStore):
            def list(self, scope: Scope | None = None) -> Iterator[BlobStat]:
                for blob in super().list(scope):
                    listed.append(blob.name)
                    yield blob

        def roots() -> Iterator[Reference]:
            assert listed == [NAME]
            yield ACME, SHA

        collect_orphans(Listening(storage.blobs()), roots, now_ms=storage.now_ms(), dry_run=False)
        assert store.exists(ACME, SHA)

    def test_put_again_during_the_collection_survives_it(self, storage: Storage, store: ArtifactStore) -> None:
        store.put(ACME, DATA)
        storage.pass_time()

        def put_again() -> list[Reference]:
            store.put(ACME, DATA)
            return []

        report = collect_orphans(store, put_again, now_ms=storage.now_ms(), dry_run=False)
        assert report.orphans == ()
        assert store.get(ACME, SHA, len(DATA)) == DATA

    def test_whatever_was_put_is_there_after_a_collection_at_the_same_time(
        self, storage: Storage, store: ArtifactStore
    ) -> None:
        """Each round makes the artifact old and starts both at once; `put` must win, or write anew."""
        store.put(ACME, DATA)
        start = Barrier(2, timeout=60)

        def put() -> ArtifactKey:
            start.wait()
            return store.put(ACME, DATA)

        def collect() -> OrphanReport:
            start.wait()
            return collect_orphans(store, nobody, now_ms=storage.now_ms(), dry_run=False)

        with ThreadPoolExecutor(2) as pool:
            for _ in range(self.races):
                storage.pass_time()
                writer, collector = pool.submit(put), pool.submit(collect)
                assert collector.result().listed <= 1
                assert store.get(ACME, writer.result().sha256, len(DATA)) == DATA

    def test_ages_are_judged_by_the_clock_of_the_storage(self, storage: Storage, store: ArtifactStore) -> None:
        assert storage.now_ms() - 2000 <= store.blobs.now_ms() <= storage.now_ms()
        store.put(ACME, DATA)
        assert collect_orphans(store, nobody, dry_run=False).orphans == ()
        storage.pass_time()
        assert [blob.name for blob in collect_orphans(store, nobody, dry_run=False).orphans] == [NAME]
        assert list(storage.blobs().list()) == []

    def test_roots_that_fail_remove_nothing(self, storage: Storage, store: ArtifactStore) -> None:
        store.put(ACME, DATA)
        storage.pass_time()

        def broken() -> Iterator[Reference]:
            yield ACME, "0" * 64
            raise OSError("the table is locked")

        with pytest.raises(OSError, match="locked"):
            collect_orphans(store, broken, now_ms=storage.now_ms(), dry_run=False)
        assert store.exists(ACME, SHA)

    def test_what_is_no_artifact_is_left_alone(self, storage: Storage, store: ArtifactStore) -> None:
        for name in not_ours():
            storage.overwrite(name, b"somebody else's")
        storage.pass_time()
        report = collect_orphans(store, nobody, now_ms=storage.now_ms(), dry_run=False)
        assert report == OrphanReport(dry_run=False, listed=0, young=0, orphans=(), unfinished=0)
        assert [storage.blobs().read(name, 99) for name in not_ours()] == [b"somebody else's"] * len(not_ours())

    @pytest.mark.parametrize("grace_s", [-1.0, 0.0, 3599.0, float("nan")])
    def test_a_grace_that_endangers_running_work_is_refused(self, store: ArtifactStore, grace_s: float) -> None:
        with pytest.raises(InvalidInput, match="grace"):
            collect_orphans(store, nobody, now_ms=0, grace_s=grace_s)

    def test_the_grace_is_seven_days(self, storage: Storage, store: ArtifactStore) -> None:
        store.put(ACME, DATA)
        storage.pass_time(7 * 24 * 3600 - 60)
        assert collect_orphans(store, nobody, now_ms=storage.now_ms()).orphans == ()
        storage.pass_time(7 * 24 * 3600 + 60)
        assert len(collect_orphans(store, nobody, now_ms=storage.now_ms()).orphans) == 1
        assert GRACE_S == 604_800


def not_ours() -> list[str]:
    """Names that the store would not give: of another depth, shard, alphabet or length."""
    place = ACME.place
    return [
        "README",
        f"{place}/notes.txt",
        f"{place}/{SHA}",
        f"{place}/00/{SHA}",
        f"{place}/{SHA[:2]}/{SHA[:63]}",
        f"{place}/{SHA[:2]}/{SHA.upper()}",
        f"{place}/{SHA[:2]}/{SHA}.bak",
        f"{place}/{SHA[:2]}/.tmp-by-hand",
        f"{place}/{SHA[:2]}/deeper/{SHA}",
        f"Acme/docs/{SHA[:2]}/{SHA}",
        f".trash/docs/{SHA[:2]}/{SHA}",
    ]
