"""Folders below one root, opened step by step, so that no symbolic link below the root is ever followed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from dagbok.events.errors import StorageFailed

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o700
_REMEMBERED: Final = 50_000  # some MB; forgetting costs an fsync
NO_FOLDER: Final = {errno.ENOTDIR, errno.ELOOP}
"""What the system says when a file or a link stands where a folder is opened."""

T = TypeVar("T")


class Folders:
    """The tree below `root`. The root itself may be reached through links; they are resolved once, here.

    Paths are relative, parts joined by slashes. Descriptors are open only inside the ``with`` block. Raises `OSError`
    as the system does, ``ENOTDIR`` or ``ELOOP`` for a link, and `StorageFailed` when the root is no folder.
    """

    def __init__(self, root: Path | str) -> None:
        self.root: Final = os.path.realpath(root)
        self._durable: set[str] = set()

    @contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """The descriptor of a folder that exists; raises `FileNotFoundError`."""
        with ExitStack() as stack:
            folder = self._open_root(stack)
            for part in path.split("/") if path else ():
                folder = _open(stack, part, folder)
            yield folder

    @contextmanager
    def made(self, path: str) -> Iterator[int]:
        """The descriptor of a folder that is made where it is missing, and whose entry in every parent is durable.

        What another process made is not trusted to be durable: the first use of a folder syncs its parent, too.
        """
        with ExitStack() as stack:
            folder = self._make_root(stack)
            walked = ""
            for part in path.split("/"):
                walked += "/" + part
                folder = self._make(stack, part, folder, walked)
            yield folder

    def look(self, path: str, read: Callable[[int], list[T]]) -> list[T]:
        """What `read` makes of a folder's descriptor; nothing when there is no such folder."""
        try:
            with self.opened(path) as folder:
                return read(folder)
        except OSError as error:
            if error.errno in NO_FOLDER or error.errno == errno.ENOENT:
                return []
            raise

    def _open_root(self, stack: ExitStack) -> int:
        try:
            return _open(stack, self.root)
        except OSError as error:
            if error.errno in NO_FOLDER:
                raise StorageFailed(f"the root of the artifact store is not a folder: {self.root}") from error
            raise

    def _make_root(self, stack: ExitStack) -> int:
        with suppress(FileNotFoundError):
            if self.root in self._durable:
                return self._open_root(stack)
        missing = [self.root]
        while not os.path.isdir(parent := os.path.dirname(missing[-1])):
            missing.append(parent)
        for path in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(path, _MODE)
            with ExitStack() as parents:
                os.fsync(_open(parents, os.path.dirname(path)))
        self._remember(self.root)
        return self._open_root(stack)

    def _make(self, stack: ExitStack, part: str, parent: int, walked: str) -> int:
        try:
            folder = _open(stack, part, parent)
        except FileNotFoundError:
            self._durable.discard(walked)
            with suppress(FileExistsError):
                os.mkdir(part, _MODE, dir_fd=parent)
            folder = _open(stack, part, parent)
        if walked not in self._durable:
            os.fsync(parent)
            self._remember(walked)
        return folder

    def _remember(self, path: str) -> None:
        if len(self._durable) >= _REMEMBERED:
            self._durable.clear()
        self._durable.add(path)


def _open(stack: ExitStack, path: str, parent: int | None = None) -> int:
    folder = os.open(path, _FOLDER, dir_fd=parent)
    stack.callback(os.close, folder)
    return folder
