"""Students who reach for the machine: its network, other processes, rights, limits, memory."""

from family_walls import CANARY, ESCAPED, breaks
from making import CLASS

SUBMISSIONS = [
    breaks(
        "abstract-socket",
        "a socket by name, to whoever listens outside",
        f"""
        def breach():
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect("\\0{CLASS}")
                return True
        """,
        True,
    ),
    breaks(
        "loopback",
        "every port of the machine's loopback",
        """
        def breach():
            ports = [int(line.split()[1].split(":")[1], 16) for line in open("/proc/net/tcp")
                     if line.split()[3] == "0A"] if os.path.exists("/proc/net/tcp") else []
            for port in [*ports, 22, 80, 111, 631, 8888]:
                with socket.socket() as sock:
                    sock.settimeout(0.2)
                    if sock.connect_ex(("127.0.0.1", port)) == 0: return True
        """,
        None,
    ),
    breaks(
        "network",
        "a route to anywhere",
        """
        def breach():
            six = socket.AF_INET6, "2606:4700::1111"
            for family, place in ((socket.AF_INET, "1.1.1.1"), six):
                with socket.socket(family, socket.SOCK_DGRAM) as sock:
                    if sock.connect_ex((place, 53)) == 0: return True  # sends nothing
        """,
        None,
    ),
    breaks(
        "other-processes",
        "looks for other processes",
        """
        def breach():
            seen = {int(name) for name in os.listdir("/proc") if name.isdigit()}
            for pid in range(2, 5000):
                try: os.kill(pid, 0); seen.add(pid)
                except ProcessLookupError: pass
                except PermissionError: seen.add(pid)
            return seen - {os.getpid()}
        """,
        True,
    ),
    breaks(
        "reads-the-parent",
        "reads and writes the memory of the processes above it",
        """
        class Vector(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
        def breach():
            room = ctypes.create_string_buffer(64)
            mine = Vector(ctypes.addressof(room), 64)
            for pid in {os.getppid(), *range(os.getpid() - 3, os.getpid()), 1} - {os.getpid(), 0}:
                theirs = Vector(id(breach), 64)  # a fork has it at the same place
                both = ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0
                if libc.process_vm_readv(pid, *both) > 0: return True
                if libc.ptrace(16, pid, 0, 0) == 0: return True
                try:
                    if open(f"/proc/{pid}/mem", "rb"): return True
                except OSError: pass
        """,
        None,
    ),
    breaks(
        "reads-the-environment",
        "looks for the grader's environment",
        f"""
        def breach():
            texts = [repr(os.environ)]
            for path in ("/proc/self/environ", *glob.glob("/proc/*/environ"),
                         *glob.glob("/proc/*/cmdline")):
                try: texts.append(open(path, "rb").read().decode(errors="replace"))
                except OSError: pass
            return {CANARY[:9]!r} + {CANARY[9:]!r} in "".join(texts)
        """,
        None,
    ),
    breaks(
        "open-descriptors",
        "uses whatever descriptor is open",
        """
        def breach():
            for number in range(4, 4096):
                try: os.fstat(number); return True
                except OSError: pass
        """,
        False,
    ),
    breaks(
        "second-line",
        "takes descriptors sent with messages, and listens on the line",
        """
        def breach():
            with socket.socket(fileno=os.dup(3)) as line:
                room = socket.CMSG_SPACE(16)
                try: data, ancillary, *_ = line.recvmsg(1, room, socket.MSG_DONTWAIT)
                except BlockingIOError: return False
                return bool(ancillary)
        """,
        False,
    ),
    breaks(
        "more-rights",
        "becomes root, mounts, leaves its root, opens devices",
        """
        def breach():
            tries = [libc.unshare(0x10000000), libc.unshare(0x20000), libc.chroot(b"/tmp"),
                     libc.setuid(0) if os.getuid() else -1, libc.umount2(b"/proc", 2),
                     libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None),
                     libc.mknod(b"/tmp/memory", 0o20666, 0x101), libc.open(b"/dev/mem", 0),
                     libc.open(b"/dev/kmsg", 0), libc.open(b"/dev/sda", 0)]
            return any(result >= 0 for result in tries)
        """,
        None,
    ),
    breaks(
        "joins-namespaces",
        "enters the namespaces of others",
        """
        def breach():
            for path in glob.glob("/proc/*/ns/*"):
                if libc.setns(libc.open(path.encode(), 0), 0) == 0: return True
            for pid in range(1, 50):
                if pid != os.getpid():
                    number = libc.syscall(434, pid, 0)
                    if number >= 0 and libc.setns(number, 0x20000) == 0: return True
        """,
        None,
    ),
    breaks(
        "kernel-settings",
        "writes settings of the kernel",
        """
        def breach():
            for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
                         "/proc/sys/user/max_user_namespaces", "/proc/self/oom_score_adj",
                         "/sys/fs/cgroup/cgroup.procs", "/proc/sysrq-trigger",
                         "/proc/self/uid_map"):
                try:
                    with open(path, "r+"): return True
                except OSError: pass
        """,
        None,
    ),
    breaks(
        "raises-its-limits",
        "lifts the limits it was given",
        """
        def breach():
            for what in range(16):
                soft, hard = resource.getrlimit(what)
                if hard == resource.RLIM_INFINITY: continue
                try: resource.setrlimit(what, (hard + 1, hard + 1)); return True
                except (OSError, ValueError): pass
        """,
        None,
    ),
    breaks(
        "kills-everything",
        "sends SIGKILL to all it can reach",
        """
        def breach():
            try: os.kill(-1, signal.SIGKILL)
            except ProcessLookupError: pass
            for pid in range(2, 300):
                try: os.kill(pid, signal.SIGKILL); return True
                except ProcessLookupError: pass
        """,
        None,
    ),
    breaks(
        "stays-behind",
        "leaves a process that writes a result later",
        f"""
        def breach(): return False
        if os.fork() == 0:
            os.setsid()
            for number in (1, 2, 3, 13, 15): signal.signal(number, signal.SIG_IGN)
            libc.prctl(1, 0, 0, 0, 0)
            if os.fork(): os._exit(0)
            os.closerange(0, 64)
            time.sleep(8)
            open("{CLASS}/../{ESCAPED}-later", "w").close()
            os._exit(0)
        """,
        None,
    ),
    breaks(
        "shadow-modules",
        "modules of its own beside the notebook and first on the path",
        f"""
        import importlib
        for place in ("{CLASS}", os.getcwd(), "/tmp"):
            try:
                for name in ("colorsys", "numpy", "msgpack", "mpedu"):
                    with open(f"{{place}}/{{name}}.py", "w") as file: file.write("taken = True")
                    break
            except OSError: pass
        def breach(): return any(hasattr(sys.modules[name], "taken") for name in sys.modules
                                 if name in ("numpy", "msgpack", "mpedu"))
        """,
        None,
    ),
    breaks(
        "own-memory",
        "searches its own memory for cases before they are asked",
        """
        # pages that are not there give EFAULT and no signal
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        def readable(page):
            if libc.write(writer, ctypes.c_void_p(page), 4096) != 4096: return b""
            return os.read(reader, 4096)
        def breach():
            wanted = (b"autograder.oracle", b"autograder/checks", b"case_seed(", b"HMAC-SHA256(")
            here = {id(one) >> 21 for one in (breach, {}, sys, struct, "x" * 9999, object())}
            pages = [(part << 21) + (n << 12) for part in here for n in range(512)]
            own = b"".join(map(readable, pages))
            source = breach.__code__.co_consts
            return any(own.count(word) > repr(source).encode().count(word) + 40 for word in wanted)
        """,
        False,
    ),
]
