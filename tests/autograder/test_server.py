"""JupyterLab as the lab command serves it: behind a token, quiet, never outliving the command."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from autograder import server
from autograder.server import LabError

NAME = "03-toy"


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


def test_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        log.open("w") as file,
        pytest.raises(LabError, match=r"JupyterLab ended at once \(.*No such directory.*\)"),
        server.serving(tmp_path / "missing", server.choose_port(None), file, os.environ),
    ):
        pytest.fail("it must not answer")


def test_server_that_does_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_LIMIT_S", 0.1)
    with subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, start_new_session=True) as deaf:
        server._stop(deaf)
    assert deaf.returncode == -signal.SIGKILL


def get(port: int, token: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"token {token}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_server_ends_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    port = server.choose_port(None)
    program = (
        "import pathlib, sys; from autograder.lab import lab; work = pathlib.Path(sys.argv[1]); "
        f"lab([pathlib.Path('{NAME}.ipynb')], lambda source: '{{}}', work, {port}, True)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "work")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().rstrip() for _ in range(4)]
        assert lines[1] == f"Open first: {NAME}/{NAME}.ipynb"
        address, token = lines[2].split("?token=")
        assert address == f"http://127.0.0.1:{port}/lab/tree/{NAME}/{NAME}.ipynb"
        codes = [get(port, given, "/api/status")[0] for given in (token, "wrong")]
        assert codes == [200, 403]
        settings = "/lab/api/settings/@jupyterlab/apputils-extension:notification"
        schema = json.loads(get(port, token, settings)[1])["schema"]["properties"]
        assert schema["fetchNews"]["default"] == "false"  # no box over the first page
        assert (tmp_path / f"work/.jupyterlab-{port}.log").exists()  # its own, not another's
        [child] = psutil.Process(process.pid).children()
        assert token not in " ".join(child.cmdline())
        process.send_signal(number)
        last = process.communicate(timeout=30)[0]
    if number is not signal.SIGKILL:
        assert process.returncode == 0
        assert last == f"JupyterLab has stopped. Your notebooks are in {tmp_path}/work.\n"
    limit = time.monotonic() + 10
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < limit, "the server outlived the command"
        time.sleep(0.05)
