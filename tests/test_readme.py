"""The Python that README.md shows runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
LAST = """
one, two = run_ranks(one_step, 4).results, run_ranks(in_torch, 2).results
assert len(one) == 4 and len(set(one)) == 1 and two[0] is None and 5 < two[1] < 6
from mpedu.schedule import peak_in_flight
assert max(peak_in_flight(v_shaped)) <= 3
print("all of it ran")
"""


def test_every_python_example_runs():
    shown = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    here = [code for code in shown if "from_environment" not in code]  # that one needs torchrun
    assert (len(shown), len(here)) == (3, 2)
    call = [sys.executable, "-P", "-W", "error", "-c", "\n".join([*here, LAST])]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300)
    assert (done.stderr, done.stdout) == ("", "all of it ran\n")
