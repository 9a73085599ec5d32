"""No tenant or project name leads out of the local artifact store, or into another one's folder."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.projections.artifacts.files import write_whole
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import Scope, blob_name, folder_name, is_blob_name, is_folder_name
from tests.support.scale import scale

DATA = b"bytes"
SHA = sha256(DATA).hexdigest()

anything = st.text(st.characters(exclude_categories=()), min_size=1)
confusable = st.text("aA0.-_~/\\? \0\n\u00e9\ud800", min_size=1, max_size=4)
long = st.builds(str.__mul__, st.sampled_from(["a", "A", "é", "a/"]), st.integers(60, 300))
plain = st.from_regex(r"[A-Za-z0-9._-]{1,128}", fullmatch=True)
names = st.one_of(anything, confusable, long, plain)
# Somebody may also choose the name that another one's folder has.
hostile = st.one_of(names, names.map(folder_name))
scopes = st.builds(Scope, hostile, hostile)


@given(one=scopes, other=scopes)
def test_no_two_scopes_share_a_place(one: Scope, other: Scope) -> None:
    assert (one == other) == (one.place.casefold() == other.place.casefold())


@given(name=hostile)
def test_no_two_spellings_of_a_name_share_a_folder(name: str) -> None:
    spellings = {name, name.upper(), name.lower(), name.swapcase(), name + ".", name + " ", folder_name(name) + "x"}
    assert len({folder_name(spelling).casefold() for spelling in spellings}) == len(spellings)


@given(scope=scopes)
def test_a_place_is_two_folders_that_every_file_system_takes(scope: Scope) -> None:
    tenant, project = scope.place.split("/")
    for folder in (tenant, project):
        assert is_folder_name(folder)
        assert folder.isascii()
        assert folder.lower() == folder
        assert 1 <= len(folder) <= 105
        assert not folder.startswith(".")
    assert is_blob_name(blob_name(scope, SHA))


@settings(deadline=None)  # a busy disk is no failure
@given(scope=scopes)
def test_everything_is_written_below_the_root(scope: Scope) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "inner" / "artifacts"
        local_store(root).put(scope, DATA)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        assert files == [root / blob_name(scope, SHA)]


@pytest.mark.parametrize(
    ("id", "folder"),
    [
        ("acme", "acme"),
        ("acme-2.docs_old", "acme-2.docs_old"),
        ("Acme", "acme~37036cd8f9746d335038eca92f8a73ae5f1bca4779a1e55e5812e37743b2f5bf"),
        ("..", "-~5ec1f7e700f37c3d0b2981d04855fc34b94aaa15457b05ca571817442d228f81"),
    ],
)
def test_the_folder_of_a_name_never_changes(id: str, folder: str) -> None:
    """Another folder would hide everything that is stored already."""
    assert folder_name(id) == folder


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o027])
def test_only_the_owner_may_read(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        local_store(tmp_path / "data" / "artifacts").put(Scope("acme", "docs"), DATA)
    finally:
        os.umask(before)
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (tmp_path / "data").rglob("*")}
    assert modes == {True: 0o700, False: 0o600}
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_a_file_has_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    before = os.umask(0o777)
    try:
        write_whole(folder, "file", DATA)
    finally:
        os.umask(before)
        os.close(folder)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_open_files_do_not_grow(tmp_path: Path) -> None:
    store = local_store(tmp_path)
    scope = Scope("acme", "docs")
    store.put(scope, DATA)
    open_before = len(os.listdir("/dev/fd"))
    for number in range(scale(50, 1000)):
        store.put(scope, b"%d" % number)
        store.put(scope, DATA)
        store.get(scope, SHA, len(DATA))
        store.exists(scope, "0" * 64)
        store.delete(scope, sha256(b"%d" % number).hexdigest())
    assert len(list(store.list())) == 1
    assert len(os.listdir("/dev/fd")) == open_before
