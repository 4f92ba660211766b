"""environment.yml, as far as it can be proved without conda: one source of truth, well formed."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
# What conda accepts as a version: "numpy =>=2" is a typical slip that it refuses.
SPECIFIER = re.compile(r"(>=|<=|==|!=|<|>)\d+(\.\d+)*(\.\*)?")


@pytest.fixture(scope="module")
def environment() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    return read


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return read["project"]


def test_environment_holds_python_pip_and_the_checkout_only(environment: dict[str, Any]) -> None:
    assert set(environment) == {"name", "channels", "dependencies"}
    assert environment["name"] == "mpedu"
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    *conda, last = environment["dependencies"]
    assert [spec.split()[0] for spec in conda] == ["python", "pip"]
    assert last == {"pip": ["-e ."]}


def test_versions_are_written_as_conda_reads_them(environment: dict[str, Any]) -> None:
    for spec in environment["dependencies"][:-1]:
        _name, version = spec.split()
        assert all(SPECIFIER.fullmatch(part) for part in version.split(","))


@pytest.mark.parametrize("slip", ["=>=2", ">=", "3.11 <4", ">=3,", "~=3.11"])
def test_slips_in_a_version_are_seen(slip: str) -> None:
    assert not all(SPECIFIER.fullmatch(part) for part in slip.split(","))


def test_python_range_is_that_of_the_package(
    environment: dict[str, Any], project: dict[str, Any]
) -> None:
    [python] = [spec.split()[1] for spec in environment["dependencies"][:-1] if "python" in spec]
    assert SpecifierSet(python) == SpecifierSet(project["requires-python"])


def test_course_takes_every_python_of_the_package_and_no_other(project: dict[str, Any]) -> None:
    script = (ROOT / "course").read_text(encoding="utf-8")
    [cases] = re.findall(r"^ +(3\.\d+(?: \| 3\.\d+)+)\)$", script, re.MULTILINE)
    allowed = SpecifierSet(project["requires-python"])
    every = [f"3.{minor}" for minor in range(40)]
    assert cases.split(" | ") == [version for version in every if version in allowed]


def test_torch_that_course_installs_is_one_the_package_admits(project: dict[str, Any]) -> None:
    script = (ROOT / "course").read_text(encoding="utf-8")
    [tested] = re.findall(r"^tested_torch='torch==([\d.]+)'$", script, re.MULTILINE)
    wanted = {made.name: made for made in map(Requirement, project["dependencies"])}
    assert tested in wanted["torch"].specifier


def test_nothing_that_a_command_needs_is_optional(project: dict[str, Any]) -> None:
    assert set(project["optional-dependencies"]) == {"slurm", "browser", "site"}
    assert {"jupyterlab", "nbgrader", "pytest", "ruff", "mypy"} <= {
        Requirement(line).name for line in project["dependencies"]
    }
