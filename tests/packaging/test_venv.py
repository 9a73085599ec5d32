"""`make install` on machines as they are: it takes the first usable Python, or says in one line what is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "requirements" / "venv.sh"


class Machine:
    """A search path that holds nothing but the Pythons given to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add_python(self, name: str, version: tuple[int, int], *, has_ensurepip: bool = True) -> None:
        """A stand-in that answers the questions of the script; asked to make an environment, it writes its name."""
        too_old = int(version < (3, 11))
        program = self.folder / name
        program.write_text(
            f"""#!/bin/sh
            case "$*" in
                "-c "*print*) echo {version[0]}.{version[1]} ;;
                "-c "*exit*) exit {too_old} ;;
                "-c "*ensurepip*) exit {int(not has_ensurepip)} ;;
                "-m venv --clear {self.folder}/venv") echo {name} > "{self.folder}/made" ;;
                *) exit 99 ;;
            esac
            """
        )
        program.chmod(0o755)

    def run(self, **settings: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.folder), "VENV": str(self.folder / "venv")} | settings
        return subprocess.run(["/bin/sh", SCRIPT], env=environment, capture_output=True, text=True, check=False)

    @property
    def made_by(self) -> str | None:
        made = self.folder / "made"
        return made.read_text().strip() if made.exists() else None


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_default_python_is_taken_when_it_is_new_enough(machine: Machine) -> None:
    machine.add_python("python3", (3, 11))
    machine.add_python("python3.13", (3, 13))
    assert machine.run().returncode == 0
    assert machine.made_by == "python3"


def test_an_old_default_is_passed_over(machine: Machine) -> None:
    machine.add_python("python3", (3, 9))
    machine.add_python("python3.12", (3, 12))
    assert machine.run().returncode == 0
    assert machine.made_by == "python3.12"


def test_one_without_ensurepip_is_passed_over(machine: Machine) -> None:
    machine.add_python("python3", (3, 11), has_ensurepip=False)
    machine.add_python("python3.12", (3, 12))
    assert machine.run().returncode == 0
    assert machine.made_by == "python3.12"


def test_a_named_python_is_the_only_one_asked(machine: Machine) -> None:
    machine.add_python("python3", (3, 13))
    machine.add_python("mine", (3, 12))
    assert machine.run(PYTHON="mine").returncode == 0
    assert machine.made_by == "mine"


def test_without_ensurepip_it_names_the_package_to_install(machine: Machine) -> None:
    machine.add_python("python3", (3, 11), has_ensurepip=False)
    result = machine.run()
    assert result.returncode == 1
    assert "apt install python3-venv" in result.stderr
    assert machine.made_by is None


def test_without_a_new_python_it_says_what_was_found(machine: Machine) -> None:
    machine.add_python("python3", (3, 9))
    result = machine.run()
    assert result.returncode == 1
    assert "needs Python 3.11 or newer; python3 is 3.9" in result.stderr


def test_without_any_python_it_says_so(machine: Machine) -> None:
    result = machine.run()
    assert result.returncode == 1
    assert "no Python was found" in result.stderr


def test_a_working_environment_is_left_alone(machine: Machine) -> None:
    machine.add_python("python3", (3, 13))
    python = machine.folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    assert machine.run().returncode == 0
    assert machine.made_by is None
