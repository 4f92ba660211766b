import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.records.locks import Busy, only_run, scratch_folder

HOLD = """
import sys, time
from pathlib import Path
from autograder.records.locks import only_run, scratch_folder
with only_run(Path(sys.argv[1])), scratch_folder() as folder:
    (folder / "inside").touch()
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, empty."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_a_second_run_in_the_same_folder_is_refused_until_the_first_is_gone(
    tmp_path: Path, temp: Path
) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-c", HOLD, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        folder = Path(other.stdout.readline().strip())
        with pytest.raises(Busy, match=r"Another run is grading into .*out; let it end, or name"):
            only_run(out).__enter__()
        with only_run(tmp_path / "elsewhere"), scratch_folder() as mine:
            assert set(temp.iterdir()) == {mine, folder}  # one in use is left alone
        other.kill()
        other.wait(10)
    assert folder.exists()
    with only_run(out), scratch_folder() as mine:
        assert set(temp.iterdir()) == {mine}
    assert list(temp.iterdir()) == []


def test_the_folder_of_a_run_ends_with_it_also_by_an_error(temp: Path) -> None:
    with pytest.raises(RuntimeError), scratch_folder() as folder:
        (folder / "a").touch()
        raise RuntimeError
    assert list(temp.iterdir()) == []


def test_what_others_or_links_left_is_not_touched(temp: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (temp / "mpedu-grading-link").symlink_to(tmp_path / "target")
    (temp / "mpedu-else").mkdir()
    if os.geteuid() == 0:
        (temp / "mpedu-grading-other").mkdir()
        os.chown(temp / "mpedu-grading-other", 12345, 12345)
    before = set(temp.iterdir())
    with scratch_folder():
        pass
    assert set(temp.iterdir()) == before
    assert (tmp_path / "target").exists()


def test_half_written_files_of_a_killed_run_are_cleared_away(tmp_path: Path) -> None:
    out = tmp_path / "out"
    kept = [out / "secret-seed", out / "results" / "03-gpipe" / "amy.json", out / "my.part"]
    left = [out / ".grades.csv.7.part", out / "results" / "03-gpipe" / ".amy.json.7.part"]
    for path in (*kept, *left):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with only_run(out):
        assert not any(path.exists() for path in left)
        assert all(path.exists() for path in kept)
