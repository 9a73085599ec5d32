"""How dispatches travel, and whom a queue takes for alive."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.agents.queue.letters import Member
from dagbok.agents.queue.members import GONE_S, Members
from dagbok.agents.queue.transport import (
    MAX_DISPATCH_BYTES,
    decode_dispatch,
    decode_reply,
    encode_dispatch,
    encode_reply,
)
from dagbok.events.canonical import sha256_hex
from dagbok.events.envelope import Answer, CancelHint, Dispatch, Input, Problem, Reply
from dagbok.events.errors import ArtifactDamaged, ArtifactNotFound
from dagbok.events.run.values import ArtifactRef, Place, SecurityContext
from dagbok.projections.artifacts.memory import MemoryBlobs
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.scope import Scope
from dagbok.testing import decompose, failure, task
from tests.support.scale import scale

SCOPE = Scope("acme", "docs")


def new_store() -> ArtifactStore:
    return ArtifactStore(MemoryBlobs())


def artifact(size_bytes: int, *, inline: bool, in_log: bool = True) -> Input:
    """An artifact of a dependency."""
    data = b"x" * size_bytes
    place = Place(0, 7, 0, 0) if in_log else None
    ref = ArtifactRef("result", sha256_hex(data), size_bytes, "application/json", place)
    return Input("dependency", ref, data if inline else None)


def dispatch(*inputs: Input, **more: object) -> Dispatch:
    """A dispatch that says a bit of everything."""
    plain = Dispatch(
        kind="verify",
        tenant="acme",
        project="docs",
        run="r",
        task="t",
        epoch=3,
        phase="integrate",
        pool="default",
        key="check",
        input_hash="hash",
        opened_at=(0, 5),
        spec=task("t", contract={"must": ["hold"]}, depends_on=("d",)),
        attempt=2,
        context=SecurityContext(user="ann"),
        graph_revision=4,
        inputs=inputs,
        problem=Problem("worker_failed", failure("bad luck"), msgspec.Raw(b'{"line":1}'), "why", "try again"),
        outputs=msgspec.Raw(b'{"x":1}'),
        proposal=decompose(task("child")),
        subject=("digest",),
    )
    return msgspec.structs.replace(plain, **more)


@given(st.lists(st.tuples(st.integers(0, 3_000), st.booleans(), st.booleans()), max_size=60))
@settings(max_examples=scale(60, 1_000), deadline=None)
def test_a_dispatch_travels_in_at_most_64_KiB_and_says_the_same_afterwards(
    wanted: list[tuple[int, bool, bool]],
) -> None:
    store = new_store()
    sent = dispatch(*[artifact(size, inline=inline, in_log=in_log) for size, inline, in_log in wanted])
    data = encode_dispatch(sent, store)
    got = decode_dispatch(data, store)
    assert len(data) <= MAX_DISPATCH_BYTES
    assert msgspec.structs.replace(got, inputs=()) == msgspec.structs.replace(sent, inputs=())
    for before, after in zip(sent.inputs, got.inputs, strict=True):
        assert (after.task, after.ref) == (before.task, before.ref)
        assert after.inline == before.inline or (after.inline is None and after.ref.place is not None)


def test_bytes_that_stand_in_the_log_are_left_out_before_anything_is_stored() -> None:
    store = new_store()
    got = decode_dispatch(encode_dispatch(dispatch(*[artifact(20_000, inline=True)] * 5), store), store)
    assert [item.inline for item in got.inputs] == [None] * 5
    assert not list(store.list())


def test_what_does_not_fit_lies_in_the_store_of_its_project_alone() -> None:
    store = new_store()
    data = encode_dispatch(dispatch(*[artifact(1, inline=False)] * 5_000), store)
    assert len(data) < 1_000
    assert len(list(store.list(SCOPE))) == len(list(store.list())) == 1


def test_a_manifest_whose_bytes_are_gone_or_changed_is_an_error() -> None:
    store = new_store()
    data = encode_dispatch(dispatch(*[artifact(1, inline=False)] * 5_000), store)
    blob = next(iter(store.list()))
    store.blobs.write(blob.name, b"x" * blob.size_bytes)
    with pytest.raises(ArtifactDamaged):
        decode_dispatch(data, store)
    with pytest.raises(ArtifactNotFound):
        decode_dispatch(data, new_store())


def test_a_manifest_that_names_the_dispatch_of_another_tenant_is_an_error() -> None:
    store = new_store()
    theirs = msgspec.json.encode(dispatch(tenant="rival"))
    stored = store.put(SCOPE, theirs)
    manifest = {"tenant": "acme", "project": "docs", "sha256": stored.sha256, "size_bytes": stored.size_bytes}
    with pytest.raises(ArtifactDamaged):
        decode_dispatch(msgspec.json.encode({"v": 1, "manifest": manifest}), store)


@pytest.mark.parametrize("data", [b"", b"null", b"{}", b'{"v":2}', b'{"v":1}', b"\xff", b'{"v":1,"dispatch":{}}'])
def test_what_is_no_parcel_of_this_version_is_none(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_dispatch(data, new_store())


@pytest.mark.parametrize(
    "reply",
    [
        Answer(id="c", accepted=False, at=(0, 9), code="not_due", reason="early", retry=True),
        Answer(id="c", accepted=True, at=(0, 9), events=("RunStarted",), stopped=(("t", 1),)),
        CancelHint(run="r", task="t", epoch=2),
    ],
)
def test_replies_say_the_same_afterwards_and_those_of_another_version_are_none(reply: Reply) -> None:
    assert decode_reply(encode_reply(reply)) == reply
    with pytest.raises(msgspec.MsgspecError):
        decode_reply(encode_reply(msgspec.structs.replace(reply, v=2)))


def members(*gone: str) -> Members:
    """Four seconds until a process rests; these are surely gone."""
    return Members(4.0, lambda process: process in gone)


def test_who_is_there_at_the_first_look_is_proven_by_its_next_sign_who_comes_later_at_once() -> None:
    found = members()
    found.saw({"old": (7, Member())}, 0)
    assert found.alive(0) == {}
    found.saw({"old": (7, Member()), "new": (1, Member())}, 1)
    assert found.alive(1).keys() == {"new"}
    found.saw({"old": (8, Member()), "new": (1, Member())}, 2)
    assert found.alive(2).keys() == {"old", "new"}


def test_who_gives_no_sign_rests_until_it_gives_one_and_is_gone_after_half_a_minute() -> None:
    found = members()
    found.saw(None, 0)
    found.saw({"a": (1, Member())}, 0)
    assert (set(found.alive(3.9)), set(found.resting(3.9))) == ({"a"}, set())
    assert (set(found.alive(4.1)), set(found.resting(4.1))) == (set(), {"a"})
    assert found.bury(GONE_S - 1) == []
    assert found.saw({"a": (2, Member())}, GONE_S - 1) is False
    assert found.alive(GONE_S - 1).keys() == {"a"}
    assert found.bury(2 * GONE_S) == ["a"]
    assert not found.known


def test_who_is_surely_gone_is_buried_as_soon_as_it_is_quiet_and_rises_only_by_a_new_sign() -> None:
    found = members("a")
    found.saw(None, 0)
    found.saw({"a": (1, Member()), "b": (1, Member())}, 0)
    assert found.bury(1.9) == []
    assert found.bury(2.1) == ["a"]
    assert found.saw({"a": (1, Member()), "b": (1, Member())}, 2.1) is False
    assert found.alive(2.1).keys() == {"b"}
    found.saw({"a": (2, Member()), "b": (1, Member())}, 3)
    assert found.alive(3).keys() == {"a", "b"}
