"""A student's process stopped and let go on, by its guardian, at the judge's word.

Known on both sides: what the judge says, and the answer: ".", then the CPU seconds used so far.
"""

import os
import signal
import struct
import time

STOP, GO_ON = b"s", b"c"
OBEYED = struct.Struct(">cd")


def obey(life: int, student: int) -> bool:
    """Does what the judge says on `life` of the child `student`; False when the judge is gone.

    Answers when it is done: a process told to stop stands still by then.
    """
    try:
        command = os.read(life, 1)
        if not command:
            return False
        if command == STOP:
            os.kill(student, signal.SIGSTOP)  # nothing can withstand it
            os.waitid(os.P_PID, student, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        else:
            os.kill(student, signal.SIGCONT)
        cpu_clock = ~student << 3 | 2  # of that process, as clock_getcpuclockid(3) gives it
        os.write(life, OBEYED.pack(b".", time.clock_gettime(cpu_clock)))
    except OSError:  # the judge has gone meanwhile
        return False
    return True
