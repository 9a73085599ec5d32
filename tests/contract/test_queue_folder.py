"""The queue between the processes of one data folder: who gets what, and what becomes of the file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from dagbok.agents.queue import lane_address, lane_of
from dagbok.events.envelope import Answer, CancelHint, Reply
from dagbok.testing import task
from tests.contract.queue_sites import (
    LANE,
    TIMEOUT_S,
    collect,
    dispatch,
    free,
    open_queue,
    processes,
    serve,
    unseen,
    until,
)

NOWHERE = b'{"v":1,"manifest":{"tenant":"acme","project":"docs","sha256":"%s","size_bytes":1}}' % (b"0" * 64)


def answer(number: int) -> Answer:
    return Answer(id=f"c{number}", accepted=True, at=(0, number))


async def test_a_process_that_is_alone_writes_no_file(tmp_path: Path) -> None:
    queue = open_queue(tmp_path, "owner")
    await queue.start()
    serve(queue)
    queue.put(LANE, [dispatch(1), dispatch(2)])
    queue.reply("client/of-a-process-that-is-gone", [answer(1)])
    queue.hint(LANE, [CancelHint(run="r", task="t", epoch=2)])
    assert await collect(queue, 1) == [1]
    await queue.close()
    assert not list(tmp_path.glob("queue.db*"))


async def test_a_process_without_a_free_place_gets_nothing_and_one_that_frees_gets_the_next(tmp_path: Path) -> None:
    async with processes(tmp_path, "slow", "quick") as (owner, slow, quick):
        serve(slow, work=0)
        places = serve(quick, work=2)
        await until(lambda: free(owner, "work") == {"slow": 0, "quick": 2})
        owner.put(LANE, [dispatch(number) for number in range(4)])
        assert await collect(quick, 2) == [0, 1]
        places.free["work"] = 0
        quick.freed(LANE)
        await until(lambda: free(owner, "work") == {"slow": 0, "quick": 0})
        places.free["work"] = 1
        quick.freed(LANE)
        assert await collect(quick, 1) == [2]


async def test_equal_processes_get_equal_shares_the_owner_among_them(tmp_path: Path) -> None:
    async with processes(tmp_path, "a", "b") as queues:
        for queue in queues:
            serve(queue, work=20)
        await until(lambda: free(queues[0], "work") == {"a": 20, "b": 20})
        queues[0].put(LANE, [dispatch(number) for number in range(30)])
        shares = await asyncio.gather(*[collect(queue, 10) for queue in queues])
        assert sorted(epoch for share in shares for epoch in share) == list(range(30))


async def test_each_key_goes_to_whom_has_places_for_it_and_none_waits_behind_another_key(tmp_path: Path) -> None:
    async with processes(tmp_path, "a", "b") as (owner, a, b):
        serve(a, slow=1)
        serve(b, quick=5)
        await until(lambda: free(owner, "quick") == {"b": 5} and free(owner, "slow") == {"a": 1})
        slow = [dispatch(number, key="slow") for number in range(10)]
        owner.put(LANE, [*slow, *[dispatch(number, key="quick") for number in range(10, 15)]])
        assert await collect(b, 5) == [10, 11, 12, 13, 14]
        assert await collect(a, 1) == [0]


async def test_what_nobody_serves_is_handed_to_somebody_who_says_so(tmp_path: Path) -> None:
    async with processes(tmp_path, "a") as (owner, a):
        owner.put(LANE, [dispatch(1, key="unknown")])
        assert await collect(a, 1) == [1]


async def test_what_the_owner_has_not_begun_is_shared_with_the_first_that_comes(tmp_path: Path) -> None:
    owner, late = open_queue(tmp_path, "owner"), open_queue(tmp_path, "late")
    await owner.start()
    mine = serve(owner, work=0)
    owner.put(LANE, [dispatch(1), dispatch(2)])
    mine.waiting = list(await owner.take(LANE))
    owner.put(LANE, [dispatch(3)])
    await late.start()
    serve(late)
    await late.join()
    assert await collect(late, 3) == [1, 2, 3]
    await until(lambda: unseen(owner) == 0)
    await late.close()
    await until(lambda: not owner.takers(LANE))
    owner.put(LANE, [dispatch(4)])
    serve(owner)
    assert await collect(owner, 1) == [4], "alone again"
    await owner.close()


async def test_what_waits_for_a_process_that_leaves_goes_to_another_and_what_it_took_is_told(tmp_path: Path) -> None:
    lost: list[tuple[str, str, int]] = []
    owner, leaves = open_queue(tmp_path, "owner", lost=lost), open_queue(tmp_path, "leaves")
    for queue in (owner, leaves):
        await queue.start()
    places = serve(leaves, work=2)
    await leaves.join()
    owner.put(LANE, [dispatch(1), dispatch(2), dispatch(3)])
    assert await collect(leaves, 2, places=places) == [1, 2]
    await until(lambda: unseen(owner) == 0)
    owner.hint(LANE, [CancelHint(run="r", task="t", epoch=1)])
    await leaves.close()
    serve(owner)
    assert await collect(owner, 1) == [3]
    await until(lambda: lost == [("r", "t", 2)])
    await owner.close()


async def test_hints_reach_every_process_and_take_back_what_waits_there(tmp_path: Path) -> None:
    async with processes(tmp_path, "a", "b") as (owner, a, b):
        heard = [list[Reply](), list[Reply]()]
        for queue, replies in zip((a, b), heard, strict=True):
            queue.listen(lane_address(LANE), replies.extend)
        owner.put(LANE, [dispatch(number) for number in range(10)])
        await until(lambda: unseen(owner) == 0)
        hint = CancelHint(run="r", task="t", epoch=3)
        owner.hint(LANE, [hint])
        await until(lambda: heard == [[hint], [hint]])
        taken = [*await a.take(LANE), *await b.take(LANE)]
        assert sorted(item.epoch for item in taken) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


async def test_replies_to_local_addresses_stay_in_memory(tmp_path: Path) -> None:
    async with processes(tmp_path, "a") as (owner, a):
        here, there = list[Reply](), list[Reply]()
        owner.listen("client/owner", here.extend)
        a.listen("client/owner", there.extend)
        a.listen("client/a", there.extend)
        owner.reply("client/owner", [answer(1)])
        assert here == [answer(1)]
        owner.reply("client/a", [answer(2)])
        await until(lambda: bool(there))
        assert there == [answer(2)]


@pytest.mark.parametrize("what", ["deleted", "garbage", "emptied", "only the write-ahead log"])
async def test_a_file_that_is_damaged_under_way_is_made_anew(tmp_path: Path, what: str) -> None:
    path = tmp_path / "queue.db"
    async with processes(tmp_path, "a") as (owner, a):
        heard = list[Reply]()
        a.listen("client/a", heard.extend)
        owner.put(LANE, [dispatch(1)])
        assert await collect(a, 1) == [1]
        if what == "deleted":
            path.unlink()
        elif what == "garbage":
            path.write_bytes(b"garbage" * 10_000)
        elif what == "emptied":
            path.write_bytes(b"")
        else:
            Path(f"{path}-wal").unlink()
        number = 1

        def arrives() -> bool:
            nonlocal number
            number += 1
            owner.put(LANE, [dispatch(number)])
            owner.reply("client/a", [answer(number)])
            return bool(heard) and taking.done()

        taking = asyncio.create_task(collect(a, 5))
        await until(arrives)
        assert len(await taking) >= 5


@pytest.mark.parametrize("what", ["garbage", "other tables", "a log", "folder"])
async def test_whatever_stands_there_at_the_start_the_owner_works(tmp_path: Path, what: str) -> None:
    path = tmp_path / "queue.db"
    if what == "garbage":
        path.write_bytes(b"garbage" * 10_000)
    elif what == "folder":
        path.mkdir()
    else:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE members (x)" if what == "other tables" else "CREATE TABLE events (x)")
        db.close()
    owner, a = open_queue(tmp_path, "owner"), open_queue(tmp_path, "a")
    for queue in (owner, a):
        await queue.start()
    serve(a)
    await asyncio.wait_for(a.join(), TIMEOUT_S)
    serve(owner, work=1)
    owner.put(LANE, [dispatch(1)])
    assert await collect(owner, 1) == [1]
    serve(owner, work=0)
    if what != "folder":
        await until(lambda: owner.takers(LANE) == {"a"})
        owner.put(LANE, [dispatch(2)])
        assert await collect(a, 1) == [2]
    for queue in (owner, a):
        await queue.close()


async def test_rows_that_cannot_be_decoded_are_dropped_and_the_others_arrive(tmp_path: Path) -> None:
    async with processes(tmp_path, "a") as (owner, a):
        heard = list[Reply]()
        a.listen("client/a", heard.extend)
        into_work = "INSERT INTO work (sender, number, taker, kind, pool, value) VALUES ('x', 1, 'a', ?, 'default', ?)"
        with sqlite3.connect(tmp_path / "queue.db") as db:
            for value in (b"\xff\xfe", b"{}", b'{"v":99}', b'{"v":1}', NOWHERE, "text", 7):
                db.execute(into_work, ("work", value))
                db.execute("INSERT INTO replies (address, value, put_ms) VALUES ('client/a', ?, 0)", (value,))
                db.execute("INSERT OR REPLACE INTO members VALUES ('odd', 1, ?)", (value,))
        db.close()
        owner.put(LANE, [dispatch(1)])
        owner.reply("client/a", [answer(1)])
        assert await collect(a, 1) == [1]
        await until(lambda: heard == [answer(1)])


async def test_a_locked_file_holds_up_nobody_and_is_made_anew_in_the_end(tmp_path: Path) -> None:
    async with processes(tmp_path, "a") as (owner, a):
        lock = sqlite3.connect(tmp_path / "queue.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        serve(a, work=5)
        mine = serve(owner, work=1)
        began_s = asyncio.get_running_loop().time()
        owner.put(LANE, [dispatch(1), dispatch(2)])
        assert asyncio.get_running_loop().time() - began_s < 0.1
        mine.free["work"] = 5
        owner.freed(LANE)
        # What could not be sent comes back to whoever can take it.
        assert sorted(await collect(owner, 2)) == [1, 2]
        mine.free["work"] = 0
        await until(lambda: free(owner, "work") == {"a": 5})
        owner.put(LANE, [dispatch(3)])
        assert await collect(a, 1) == [3]
        lock.close()


async def test_what_is_in_the_file_stays_bounded(tmp_path: Path) -> None:
    async with processes(tmp_path, "a") as (owner, a):
        heard = list[Reply]()
        a.listen("client/a", heard.extend)
        owner.put(LANE, [dispatch(number) for number in range(500)])
        await collect(a, 500)
        owner.reply("client/a", [answer(1)])
        await until(lambda: bool(heard))
        rows = counted(tmp_path)
        assert rows["work"] == 0
        assert rows["members"] == 1


def counted(folder: Path) -> Counter[str]:
    """Rows by table."""
    with sqlite3.connect(folder / "queue.db") as db:
        found = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("work", "members")}
    db.close()
    return Counter(found)


async def test_a_new_owner_takes_over_from_a_dead_one_with_the_same_processes(tmp_path: Path) -> None:
    async with processes(tmp_path, "a") as (owner, a):
        owner.put(LANE, [dispatch(1)])
        assert await collect(a, 1) == [1]
        await owner.close()
        heir = open_queue(tmp_path, "heir")
        await heir.start()
        heir.put(LANE, [dispatch(1), dispatch(2)])
        assert await collect(a, 2) == [1, 2]
        await heir.close()


async def test_a_worker_that_becomes_the_owner_goes_on_with_the_others(tmp_path: Path) -> None:
    async with processes(tmp_path, "a", "b") as (owner, a, b):
        await owner.close()
        serve(a, work=0)
        a.put(LANE, [dispatch(1), dispatch(2)])
        assert await collect(b, 2) == [1, 2]


async def test_lanes_are_shared_each_by_itself(tmp_path: Path) -> None:
    reviews = lane_of("verify", "default")
    async with processes(tmp_path, "a") as (owner, a):
        serve(owner, reviews, check=3)
        owner.put(reviews, [dispatch(1, kind="verify", key="check")])
        assert await collect(owner, 1, reviews) == [1]
        owner.put(LANE, [dispatch(2)])
        assert await collect(a, 1) == [2]


async def test_the_last_replies_of_an_owner_that_closes_arrive(tmp_path: Path) -> None:
    async with processes(tmp_path, "a") as (owner, a):
        heard = list[Reply]()
        a.listen("client/a", heard.extend)
        owner.reply("client/a", [answer(1)])
        await owner.close()
        await until(lambda: heard == [answer(1)])


async def test_a_full_disk_holds_up_nobody_and_sharing_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    async with processes(tmp_path, "a") as (owner, a):
        mine = serve(owner, work=0)
        post = vars(owner)["_post"]
        await until(lambda: vars(post)["_round"] is None)
        file = vars(vars(post)["_file"])["_db"]
        file.execute("PRAGMA max_page_count=1")  # as many as it has
        big = [msgspec.structs.replace(dispatch(number), spec=task("t", goal="x" * 50_000)) for number in range(5)]
        owner.put(LANE, big)
        await until(lambda: not post.usable)
        mine.free["work"] = 5
        owner.freed(LANE)
        assert sorted(await collect(owner, 5)) == [0, 1, 2, 3, 4]
        mine.free["work"] = 0
        await until(lambda: vars(post)["_round"] is None)
        file.execute("PRAGMA max_page_count=100000")
        await until(lambda: post.usable)
        owner.put(LANE, [dispatch(6)])
        assert await collect(a, 1) == [6]
