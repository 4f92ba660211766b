"""JupyterLab as a child process that never outlives us, on 127.0.0.1 behind a secret token."""

import contextlib
import http.client
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

READY_LIMIT_S = 120.0  # it answers after about 5 s; a cold, busy machine takes far longer
STOP_LIMIT_S = 15.0
# JupyterLab's box "would you like to get news" would cover the first page.
SETTINGS = Path(__file__).resolve().with_name("jupyter")


class LabError(Exception):
    """One sentence for the user: what cannot be done, and the way out."""


class Server(NamedTuple):
    """A JupyterLab that answers."""

    process: subprocess.Popen[bytes]
    address: str
    token: str


def choose_port(wanted: int | None) -> int:
    """A port that can be served on: the wanted one, else a free one; LabError when it cannot."""
    candidates = [*range(8888, 8898), 0] if wanted is None else [wanted]
    for candidate in candidates:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", candidate))
            return int(probe.getsockname()[1])
    raise LabError(
        f"port {wanted} is in use or not yours to use; give another one, "
        "or leave --port out and a free one is taken."
    )


@contextlib.contextmanager
def serving(
    folder: Path, port: int, log: IO[str], environment: Mapping[str, str]
) -> Iterator[Server]:
    """JupyterLab on `folder` while the block runs; LabError when it does not come up."""
    token = secrets.token_hex(24)
    options = [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ServerApp.base_url=/"]
    options += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={folder}", "--no-browser"]
    if os.geteuid() == 0:
        options.append("--allow-root")
    more_settings = filter(None, [str(SETTINGS), environment.get("JUPYTER_CONFIG_PATH")])
    variables = {
        "JUPYTER_CONFIG_PATH": os.pathsep.join(more_settings),
        # Here and not among the options, which every user of the machine can read.
        "JUPYTER_TOKEN": token,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", "from autograder.server import serve; serve()", *options],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        env={**environment, **variables},
        start_new_session=True,  # Ctrl-C is ours: JupyterLab would ask whether it is meant
    )
    try:
        _wait_until_ready(process, port, token, log.name)
        yield Server(process, f"http://127.0.0.1:{port}", token)
    finally:
        _stop(process)


def serve() -> None:
    """Run JupyterLab, with this process's arguments, until standard input closes.

    The lab command holds the other end of it: however that ends, the server ends too.
    """
    from jupyterlab.labapp import LabApp  # type: ignore[import-untyped]

    def stop_when_closed() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_when_closed, daemon=True).start()
    LabApp.launch_instance(sys.argv[1:])


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, token: str, log: str) -> None:
    """Return once the server answers; LabError when it ends first or the limit is over."""
    limit = time.monotonic() + READY_LIMIT_S
    while not _answers(port, token):
        if process.poll() is not None:
            lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines() or [""]
            raise LabError(f"JupyterLab ended at once ({lines[-1].strip()}).")
        if time.monotonic() > limit:
            raise LabError(f"JupyterLab did not answer within {READY_LIMIT_S:.0f} s.")
        time.sleep(0.1)


def _answers(port: int, token: str) -> bool:
    # http.client, since urllib would go through a proxy that the user may have set
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/api/status", headers={"Authorization": f"token {token}"})
        return connection.getresponse().status == 200
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server; it ends its kernels, which otherwise end by themselves once it is gone."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(STOP_LIMIT_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
