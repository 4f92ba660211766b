"""The command line of the package: which module a word chooses, and how a command ends."""

import io
import os
import signal
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

from mpedu.__main__ import COMMANDS, main
from mpedu.arguments import end_at_interrupt
from mpedu.faults import Failure


@pytest.fixture(autouse=True)
def handlers():
    """Signals as on a terminal, however the tests were started; what `main` sets is set back."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def command(monkeypatch):
    """A command `toy`, whose `run` does what it is given."""
    module = ModuleType("mpedu.toy")
    module.add_arguments = lambda parser: parser.add_argument("--steps", type=int)
    monkeypatch.setitem(sys.modules, "mpedu.toy", module)
    monkeypatch.setitem(COMMANDS, "toy", "a toy")

    def does(run):
        module.run = run

    return does


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_module_and_an_example(name, capsys):
    module = import_module(f"mpedu.{name}")
    assert callable(module.run)
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: ./course {name} ") and f"example: ./course {name}" in said


def test_a_command_gets_its_arguments_and_gives_the_status(command):
    command(lambda args: args.steps)
    assert main(["toy", "--steps", "7"]) == 7


def test_a_command_that_is_not_chosen_is_not_imported(monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, "absent", "there is no such module")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "there is no such module" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ValueError("steps=0; give 1 or more"), 2, "steps=0; give 1 or more"),
        (Failure("rank 1 died"), 1, "rank 1 died"),
        (FileNotFoundError(2, "No such file", "a.txt"), 2, "a.txt: No such file."),
        (PermissionError(13, "Permission denied", "b"), 1, "b: Permission denied."),
        (KeyboardInterrupt(), 130, "stopped."),
    ],
)
def test_what_ends_a_command_is_one_sentence_and_a_status(command, capsys, error, status, said):
    def run(_args):
        raise error

    command(run)
    assert main(["toy"]) == status
    assert capsys.readouterr().err == f"course toy: {said}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_kill_or_a_closed_terminal_ends_a_command_like_ctrl_c(command, number):
    def run(_args):
        signal.raise_signal(number)
        return 0

    command(run)
    assert main(["toy"]) == 130


def test_a_command_under_nohup_outlives_its_terminal(command):
    def run(_args):
        signal.raise_signal(signal.SIGHUP)
        return 0

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    command(run)
    assert main(["toy"]) == 0


def test_a_command_whose_terminal_takes_no_words_ends_with_its_status(command, monkeypatch):
    class Closed(io.StringIO):
        def write(self, _text):
            raise OSError(5, "Input/output error")

    def run(_args):
        raise KeyboardInterrupt

    command(run)
    monkeypatch.setattr(sys, "stderr", Closed())
    assert main(["toy"]) == 130


# A module whose import swallows every exception, and takes long.
SLOW_IMPORT = """
import time
print("importing", flush=True)
for _ in range(60):
    try:
        time.sleep(1)
    except BaseException:
        pass
"""


@pytest.mark.parametrize("name", ["train", "bench"])
def test_an_interrupt_while_modules_are_imported_is_told_in_one_line(tmp_path, name):
    (tmp_path / "torch.py").write_text(SLOW_IMPORT)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "mpedu", name],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as ended:
        try:
            assert ended.stdout.readline() == "importing\n"
            ended.send_signal(signal.SIGINT)
            said = ended.communicate(timeout=30)[1]
        finally:
            ended.kill()
    assert (ended.returncode, said) == (130, f"course {name}: stopped.\n")


def test_an_interrupt_is_looked_after_again_once_a_command_runs(command):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_at_interrupt()
    assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    found = []
    command(lambda _args: found.append(signal.getsignal(signal.SIGINT)) or 0)
    assert main(["toy"]) == 0
    assert found == [signal.default_int_handler]


def test_an_interrupt_that_is_to_be_ignored_stays_so(command):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell sets it in the background
    end_at_interrupt()
    command(lambda _args: 0)
    assert main(["toy"]) == 0
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "course: the following arguments are required: COMMAND"),
        (["tray"], "course: argument COMMAND: invalid choice: 'tray'"),
        (["toy", "--steps", "x"], "course toy: argument --steps: invalid int value: 'x'"),
        (["toy", "--frob"], "course toy: --frob is not known; the usage above lists what is"),
    ],
)
def test_a_misuse_shows_the_usage_and_one_sentence(command, capsys, words, said):
    command(lambda args: 0)
    with pytest.raises(SystemExit) as ended:
        main(words)
    usage, *_, last = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert usage.startswith("usage: ./course") and last.startswith(said)
