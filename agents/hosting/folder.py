"""The data folder of the embedded host: what lies where, and whether the file system is fit for it (architecture
3.8)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dagbok.agents.hosting.heads import check_log, check_not_lost
from dagbok.agents.hosting.unfit import check_folder, check_plain
from dagbok.events.codes import Code
from dagbok.events.errors import StorageFailed

PARTITION = 0
"""The one partition of a data folder."""

NETWORK = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "ncpfs",
        "9p",
        "virtiofs",
        "vboxsf",
        "prl_fs",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
        "fuse.rclone",
        "fuse.vmhgfs-fuse",
    )
)
"""File systems whose locks and syncs do not hold what SQLite and this host rely on: those of networks, and those that a
virtual machine shares with its host."""

SIDE_FILES = ("-wal", "-shm", "-journal")
"""What SQLite puts beside a database."""


@dataclass(frozen=True)
class DataFolder:
    """Paths below one folder, absolute: a worker may go to another directory. `prepare` makes it; nothing else does."""

    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.root.absolute())

    @property
    def log(self) -> Path:
        """The log: the truth."""
        return self.root / "log.db"

    @property
    def tables(self) -> Path:
        """The projections; can be deleted and built anew."""
        return self.root / "tables.db"

    @property
    def queue(self) -> Path:
        """What travels between processes now; can be deleted."""
        return self.root / "queue.db"

    @property
    def artifacts(self) -> Path:
        """Artifacts too large for the log."""
        return self.root / "artifacts"

    @property
    def snapshots(self) -> Path:
        """Snapshots; can be deleted."""
        return self.root / "snapshots"

    @property
    def processes(self) -> Path:
        """A lock per living process."""
        return self.root / "processes"

    @property
    def scheduler_lock(self) -> Path:
        """Held by the process that decides."""
        return self.root / "scheduler.lock"

    def has_log(self) -> bool:
        """Whether there is a log to read; changes nothing. Raises `LogLost` when it is gone, but what came of it is
        there. Blocks, microseconds."""
        check_not_lost(self.log, self.tables, self.queue, self.snapshots, self.artifacts, PARTITION)
        return self.log.is_file()

    def prepare(self) -> None:
        """Create what is missing, and look at what is there. Raises `StorageFailed` when the folder is not fit to be
        used, with advice (something odd in the place of a file, no right to write, a network), and `LogLost` when the
        log is gone or is not the one that the rest was built from. Blocks, milliseconds."""
        check_folder(self.root)
        kind = filesystem_of(self.root)
        if kind in NETWORK:
            raise StorageFailed(f"{self.root} is on a network file system ({kind})", code=Code.NETWORK_FILESYSTEM)
        for folder in (self.artifacts, self.snapshots, self.processes):
            check_folder(folder)
        for database in (self.log, self.tables):
            for path in (database, *(database.with_name(database.name + ending) for ending in SIDE_FILES)):
                check_plain(path)
        check_log(self.log, self.tables, self.queue, self.snapshots, self.artifacts, PARTITION)


def filesystem_of(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The type of the file system that `path` is on; none where the system does not tell."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return None
    resolved = path.resolve()
    found: tuple[int, str | None] = (-1, None)
    for line in lines:
        fields, _, rest = line.partition(" - ")
        mount = Path(fields.split(" ")[4].replace("\\040", " "))
        if (resolved == mount or mount in resolved.parents) and len(mount.parts) >= found[0]:
            found = (len(mount.parts), rest.split(" ")[0])
    return found[1]
