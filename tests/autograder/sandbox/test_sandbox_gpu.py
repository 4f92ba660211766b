"""Of the machine's GPUs a student's process sees one, or none."""

from pathlib import Path

import pytest
from sandboxed import LIMITS, ask

from autograder.sandbox import NOT_WALLED, Sandbox, SandboxError

HERE = sum(1 for path in Path("/dev").glob("nvidia*") if path.name[6:].isdigit())
COUNT = (
    "import torch\ndef f(): return [torch.cuda.device_count(), float(torch.ones(3).cuda().sum())]"
)
SEEN = "import os\ndef f(): return [n for n in os.listdir('/dev') if n.startswith('nvidia')]"


def test_no_gpu_is_there_unless_asked_for(walled: Sandbox) -> None:
    assert ask(walled, SEEN) == []


def test_with_a_gpu_addresses_are_not_counted(runtime: Path) -> None:
    source = "import resource\ndef f(): return resource.getrlimit(resource.RLIMIT_AS)[0]"
    with Sandbox(runtime, LIMITS, rung=NOT_WALLED, gpu=0) as sandbox:
        assert ask(sandbox, source) == -1
    with Sandbox(runtime, LIMITS, rung=NOT_WALLED) as sandbox:
        assert ask(sandbox, source) > LIMITS.memory_bytes


@pytest.mark.gpu
@pytest.mark.skipif(HERE == 0, reason="no GPU on this machine")
def test_exactly_the_gpu_that_was_asked_for_can_be_used(runtime: Path) -> None:
    limits = LIMITS._replace(call_s=60, exercise_s=120)
    with Sandbox(runtime, limits, gpu=HERE - 1) as sandbox:
        try:
            assert sandbox.rung != NOT_WALLED
        except (AssertionError, SandboxError):
            pytest.skip("no walls on this machine")
        assert ask(sandbox, SEEN).count(f"nvidia{HERE - 1}") == 1
        assert ask(sandbox, COUNT) == [1, 3.0]
