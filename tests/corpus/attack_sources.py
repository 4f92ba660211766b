"""Cells by which students of the corpus attack within their own process."""

AFTER_PUBLIC = """
    inner, n_calls = split_batch, 0
    def split_batch(n_samples, n_microbatches):
        global n_calls
        n_calls += 1
        if n_samples > 40:
            {}
        return inner(n_samples, n_microbatches)
"""
NOT_A_NUMBER = """
    def idle_share(timeline): return float("nan")
    def bubble_fraction(a, b): return float("nan")
    def bubble_over_ideal(a, b): return float("inf")
    def min_microbatches(a, b): return True
    def step_time_s(*args): return -0.0
    def best_microbatches(*args): return 10**18
    def split_batch(*args): return [(float("nan"), float("nan"))] * 4
    def cause(run): return ""
    def gpipe(*args): return [[Action("F", True, 0.0)]]
"""
SUBCLASSES = """
    class Yes(float):
        __sub__ = __rsub__ = __abs__ = lambda self, *other: 0.0
        __eq__ = __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: True
        __hash__ = float.__hash__
    class Whole(int):
        __eq__ = __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: True
        __index__ = __int__ = lambda self: 1
        __hash__ = int.__hash__
    class Name(str):
        __eq__ = lambda self, other: True
        __hash__ = str.__hash__
    class Any(tuple):
        __eq__ = lambda self, other: True
        __getitem__ = lambda self, i: 0
        __hash__ = tuple.__hash__
    def idle_share(timeline): return Yes(0.5)
    def bubble_fraction(a, b): return Yes(0.5)
    def bubble_over_ideal(a, b): return Yes(0.5)
    def min_microbatches(a, b): return Whole(3)
    def step_time_s(*args): return Yes(1)
    def best_microbatches(*args): return Whole(3)
    def split_batch(*args): return Any([(1, 1.0)])
    def cause(run): return Name("none")
    def gpipe(*args): return Any()
"""
LYING_RECORD = """
    class Turncoat(Action):
        kind = property(lambda self: "F")
    def gpipe(n_stages, n_microbatches):
        return [[Turncoat("B", 0, 0)] * 2 * n_microbatches] * n_stages
"""
FORGED_ANSWERS = """
    import msgpack, os, struct
    def split_batch(n_samples, n_microbatches):
        for number in range(1, 200):
            data = msgpack.packb([1, "answer", number, [0]])
            os.write(3, struct.pack(">I", len(data)) + data)
        return []
"""
FORK_TWICE = """
    import os
    inner = split_batch
    def split_batch(n_samples, n_microbatches):
        os.fork()
        return [] if os.fork() else inner(n_samples, n_microbatches)
"""
PATCHED_WORKER = """
    import autograder.worker.student as student
    import autograder.worker.protocol as protocol
    import autograder.worker.plain as plain
    student._Notebook.answer = lambda self, number, name, args, kwargs: ("passed", number, True)
    plain.coerced = lambda value: True
    protocol.MAX_FRAME_BYTES = plain.MAX_SIZE = 10**12
"""
PATCHED_WRITER = """
    import autograder.worker.plain as plain
    plain._Writer.tree = lambda self, value: None
"""
PATCHED_MSGPACK = """
    import msgpack
    real = msgpack.packb
    msgpack.packb = lambda value, **more: real([1, "answer", value[2], ["passed", 2, 2]])
    import numpy
    numpy.ndarray = numpy.asarray = numpy.frombuffer = lambda *args, **more: True
"""
SEARCHES = """
    import gc, inspect, sys, threading
    def hits():
        wanted = ("Draw", "Case", "Exercise", "GroupVerdict", "Diagnosis", "Unit", "Grader")
        for one in gc.get_objects():
            if type(one).__name__ in wanted: yield one
        for name in list(sys.modules):
            if name.startswith(("autograder.checks", "autograder.oracle", "autograder.bank",
                                "autograder.judge", "autograder.seeds")): yield name
        for frame in sys._current_frames().values():
            while frame:
                if {"exercise", "draw", "expected", "secret"} & set(frame.f_locals): yield frame
                frame = frame.f_back
    inner = split_batch
    def split_batch(*args):
        return inner(*args) if list(hits()) else []
"""
ASKS_THE_IMPORTER = """
    import importlib, importlib.util, pkgutil, sys
    def found():
        for name in ("oracle", "bank.unit_03.right", "checks.unit_03", "judge", "seeds", "grader"):
            for maker in (importlib.import_module, importlib.util.find_spec, pkgutil.resolve_name):
                try:
                    if maker("autograder." + name): return True
                except ImportError: pass
        return any(key.startswith("autograder.") and "worker" not in key and "notebook" not in key
                   for key in sys.modules)
    inner = split_batch
    def split_batch(*args):
        return inner(*args) if found() else []
"""
TRANSFORMERS = """
    shell = get_ipython()
    try:
        shell.input_transformers_post.append(lambda lines: [l for l in lines if "check" not in l])
    except Exception: pass
    import ast
    class Dropping(ast.NodeTransformer):
        def visit_Assert(self, node): return ast.Pass()
        def visit_Raise(self, node): return ast.Pass()
    try: shell.ast_transformers.append(Dropping())
    except Exception: pass
    shell.showtraceback = lambda *args, **more: None
    shell.run_cell_magic("javascript", "", "score(3)")
"""
SESSION = """
    shell = get_ipython()
    try:
        session = shell.kernel.session
        session.send = lambda *args, **more: None
        shell.kernel.do_execute = lambda *args, **more: {"status": "ok"}
    except Exception: pass
"""
FAKE_OUTPUT = """
    import json, sys
    print("2.0"); print("score: 2 of 2", file=sys.stderr)
    for name in ("result.json", "results.json", "03-gpipe.json", "/tmp/results/03-gpipe.json"):
        try:
            with open(name, "w") as file:
                json.dump({"score": 20, "status": "graded", "exercise": "split_batch"}, file)
        except OSError: pass
    2.0
"""
READS_CELLS = """
    import re, __main__
    texts = [str(value) for name, value in vars(__main__).items() if name in ("In", "_ih", "_i")]
    print(texts, re.findall(r"check.*", str(texts)))
"""
OWN_CHECK = """
    import autograder.notebook
    check = autograder.notebook.check = lambda *args: 2.0
    hint = guess = show = my_best = lambda *args, **more: 2.0
    def judge(*args): return 2
    def run_ranks(*args, **more): return 2
    split_score = check("split_batch")
"""
EXCEPTIONS = """
    import builtins
    class Never(type):
        __instancecheck__ = __subclasscheck__ = lambda cls, other: False
    builtins.ValueError = Never("ValueError", (Exception,), {})
    builtins.BaseException = builtins.Exception = Never("Exception", (), {})
"""
REFUSES_ALL = """
    def split_batch(n_samples, n_microbatches):
        raise ValueError(f"{n_samples} {n_microbatches} withheld unwritten passed")
    def gpipe(n_stages, n_microbatches):
        raise ValueError(f"n_stages={n_stages} n_microbatches={n_microbatches}")
"""
INJECTS = """
    class E(Exception):
        pass
    E.__name__ = "<script>alert(1)</script>"
    def split_batch(n_samples, n_microbatches):
        raise E('</code><script>alert(1)</script>\\x1b[2J=cmd()\\u202e {{ result.score }}')
    raise E('"><img src=x onerror=alert(1)>')
"""
TELLS = """
    import sys, warnings
    def split_batch(*args):
        print("told", args); print("told", args, file=sys.stderr); warnings.warn(f"told {args}")
        raise RuntimeError(f"told {args}")
    def idle_share(timeline):
        return f"told {timeline}"
    def step_time_s(*args):
        raise type(f"told{args}", (KeyError,), {})(args)
    def cause(run):
        return repr(run)
    def min_microbatches(*args):
        return [args]
"""
