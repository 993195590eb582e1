"""Every wait below tests/ has a limit: a failing test and its teardown must end.

pytest-timeout no longer watches a test that has failed, so nothing else would end its teardown. The
rules go by names, because a syntax tree has no types:

- `join`, `wait`, `acquire` and `communicate` need a timeout, or `blocking=False`. `str.join` takes
  an argument, so it is never mistaken for a wait.
- `asyncio.wait`, `asyncio.wait_for`, `Condition.wait_for(predicate)` and the functions of
  `subprocess` need one too.
- `get()` needs one if the module creates or annotates its receiver as a queue, and `result()` if
  the module uses the futures of threads: an asyncio task never blocks in it.
- `readline()`, and `read()` or a loop over the `stdout` or `stderr` of a process, cannot have one:
  they go into `with program.limited_reads()` (tests.programs).
- `flock` needs LOCK_NB and `waitpid` WNOHANG. A block of a ThreadPoolExecutor ends when its last
  thread does: `tests.threads.thread_pool` has a limit.
- A coroutine gets its limit from outside: from `async with asyncio.timeout(…)` in the same
  function, or from `asyncio.wait_for(…, limit)`.
- A method that waits is passed to a thread with its timeout: `to_thread(event.wait, 60)`.

Not detected are `with lock:`, sockets and connections without a timeout, and waits inside
libraries.
"""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parent

# Modules that are being changed elsewhere at the moment.
EXCEPTIONS = {
    # On a daemon thread; everything that waits for its lines has a limit.
    ("uamp_project/servers/served.py", "self.process.stdout"),
    # The file of a socket that has a timeout.
    ("uamp_project/servers/test_servers.py", "come.readline()"),
}

# A module without any of these words cannot wait, and is not parsed.
WORDS = (
    *(".join()", ".join,", ".join)", ".wait(", ".wait,", ".wait)", ".wait_for(", ".readline"),
    *("acquire", "communicate", "flock", "waitpid", "subprocess", ".stdout", ".stderr"),
    *("Queue", "futures", "run_coroutine_threadsafe", "timeout=None"),
)
# The position of the timeout in calls that wait; functions of subprocess take it by name only.
PLACES = {
    **dict.fromkeys(("join", "result", "wait"), 0),
    **dict.fromkeys(("acquire", "communicate", "get", "wait_for"), 1),
    **{f"asyncio.{name}": 1 for name in ("wait", "wait_for")},
    **{f"subprocess.{name}": 99 for name in ("call", "check_call", "check_output", "run")},
}
# Calls that return at once with one of these flags.
FLAGS = {"flock": ("LOCK_NB", "LOCK_UN"), "waitpid": ("WNOHANG",)}
QUEUES = {"JoinableQueue", "LifoQueue", "PriorityQueue", "Queue", "SimpleQueue"}
POOLS = {"ProcessPoolExecutor", "ThreadPoolExecutor"}
READS = "limited_reads"
BLOCKS = {READS, "fail_after", "move_on_after", "timeout", "timeout_at"}
# They take coroutines.
TAKERS = {"create_task", "ensure_future", "gather", "shield", "wait", "wait_for"}
# They run a function in a thread; the value is the function's position in the arguments.
THREADS = {"Thread": 1, "run_in_executor": 1, "submit": 0, "to_thread": 0}


def last_name(node: ast.expr | None) -> str:
    """Return `b` for `a.b`, `b`, `b[0]` and `b(…)`; '' for other expressions."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Subscript(value=inner) | ast.Call(func=inner):
            return last_name(inner)
    return ""


def argument(call: ast.expr, place: int, name: str) -> str:
    """Return an argument by position or name; '' if it is missing or None."""
    if not isinstance(call, ast.Call):
        return ""
    values = [*call.args[place : place + 1]]
    values += [keyword.value for keyword in call.keywords if keyword.arg == name]
    return next((text for value in values if (text := ast.unparse(value)) != "None"), "")


def has_timeout(call: ast.Call, place: int) -> bool:
    """Return whether a call has a timeout, or does not block."""
    blocks = argument(call, 0, "blocking") or argument(call, 0, "block")
    return bool(argument(call, place, "timeout")) or (place == 1 and blocks == "False")


def is_pipe(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in {"stderr", "stdout"}


def queues_of(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module gives to queues."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=ast.Call() as value):
                if last_name(value) in QUEUES:
                    yield last_name(target)
            case ast.AnnAssign(target=target, annotation=annotation):
                if last_name(annotation) in QUEUES:
                    yield last_name(target)
            case ast.arg(arg=name, annotation=annotation):
                if last_name(annotation) in QUEUES:
                    yield name


def limits_below(node: ast.AST, limits: frozenset[str]) -> frozenset[str]:
    """Return the limits below a node: "timeout" for coroutines, READS for pipes."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return frozenset()
        case ast.With(items=items) | ast.AsyncWith(items=items):
            calls = [item.context_expr for item in items]
            names = {
                name
                for call in calls
                if (name := last_name(call)) == READS or argument(call, 0, "delay")
            }
            return limits | {READS if name == READS else "timeout" for name in names & BLOCKS}
        case ast.Call() if last_name(node.func) == "wait_for" and argument(node, 1, "timeout"):
            return limits | {"timeout"}
    return limits


def takes_coroutines(node: ast.AST, *, is_coroutine: bool) -> bool:
    """Return whether the children of a node are awaited."""
    match node:
        case ast.Await():
            return True
        case ast.Call(func=function):
            return last_name(function) in TAKERS
        case ast.GeneratorExp() | ast.List() | ast.ListComp() | ast.Set() | ast.Starred():
            return is_coroutine
    return False


class Module:
    """Collects the waits of a module that have no limit, with their lines."""

    def __init__(self, text: str) -> None:
        self.waits: list[tuple[int, str]] = []
        tree = ast.parse(text)
        self._uses_futures = "concurrent.futures" in text or "run_coroutine_threadsafe" in text
        self._queues = set(queues_of(tree)) if "Queue" in text else set()
        self._visit(tree, frozenset(), is_coroutine=False)

    def _visit(self, node: ast.AST, limits: frozenset[str], *, is_coroutine: bool) -> None:
        """Visit a node and its descendants.

        `limits` are those of the enclosing blocks in the same function; the value of a coroutine is
        awaited, or passed to something that awaits it.
        """
        match node:
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    if last_name(item.context_expr) in POOLS:
                        self._refuse(item.context_expr)
            case ast.For(iter=source) | ast.comprehension(iter=source):
                if is_pipe(source) and READS not in limits:
                    self._refuse(source)
            case ast.Call() if self._waits(node, limits, is_coroutine=is_coroutine):
                self._refuse(node)
        limits = limits_below(node, limits)
        takes = takes_coroutines(node, is_coroutine=is_coroutine)
        for child in ast.iter_child_nodes(node):
            self._visit(child, limits, is_coroutine=takes)

    def _refuse(self, node: ast.expr) -> None:
        self.waits.append((node.lineno, ast.unparse(node).partition("\n")[0]))

    def _waits(self, call: ast.Call, limits: frozenset[str], *, is_coroutine: bool) -> bool:
        """Return whether a call waits without a limit."""
        name = last_name(call.func)
        if name in THREADS:
            return self._is_handed_over(call, THREADS[name])
        if not isinstance(call.func, ast.Attribute) or (is_coroutine and "timeout" in limits):
            return False
        if name == "readline" or (name == "read" and is_pipe(call.func.value)):
            return READS not in limits
        if name in FLAGS:
            return not any(flag in ast.unparse(call) for flag in FLAGS[name])
        receiver = last_name(call.func.value)
        place = PLACES.get(f"{receiver}.{name}", PLACES.get(name))
        return (
            place is not None
            and self._may_wait(call, name, receiver, is_coroutine=is_coroutine)
            and not has_timeout(call, place)
        )

    def _may_wait(self, call: ast.Call, name: str, receiver: str, *, is_coroutine: bool) -> bool:
        """Return whether a call can be a wait, not something else with the same name."""
        match name:
            case "get":
                return receiver in self._queues
            case "join":
                return not is_coroutine or receiver in self._queues
            case "result":
                return self._uses_futures and not is_coroutine
            case "wait_for":
                # Waiting for a page's element, or for printed text, has a default limit.
                return bool(call.args) and not isinstance(call.args[0], ast.Constant)
        return True

    def _is_handed_over(self, call: ast.Call, place: int) -> bool:
        """Return whether a thread gets a waiting function without any argument for it."""
        targets = [keyword.value for keyword in call.keywords if keyword.arg == "target"]
        targets += call.args[place:]
        others = {keyword.arg for keyword in call.keywords} & {"args", "blocking", "timeout"}
        if len(targets) != 1 or others:
            return False
        if not isinstance(function := targets[0], ast.Attribute):
            return False
        if function.attr == "get":
            return last_name(function.value) in self._queues
        return function.attr in {"readline", *PLACES} - {"result"}


def waits_of(text: str) -> list[tuple[int, str]]:
    """Return the waits of a module that have no limit, with their lines."""
    return Module(text).waits if any(word in text for word in WORDS) else []


def test_no_test_waits_without_a_limit() -> None:
    names = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py")}
    waits = {name: waits_of((TESTS / name).read_text()) for name in names}

    assert [
        f"tests/{name}:{line}: {source}"
        for name in sorted(waits)
        for line, source in waits[name]
        if (name, source) not in EXCEPTIONS
    ] == []
    assert {(name, source) for name in waits for _, source in waits[name]} == EXCEPTIONS


REFUSED = [
    "thread.join()",
    "threads[0].join()",
    "thread.join(timeout=None)",
    "process.wait()",
    "event.wait(None)",
    "self.process.wait(timeout=None)",
    "barrier.wait()",
    "lock.acquire()",
    "lock.acquire(True)",
    "lock.acquire(timeout=None)",
    "process.communicate()",
    "process.communicate(b'text')",
    "process.stdout.readline()",
    "source.readline()",
    "process.stdout.read()",
    "for line in process.stdout: print(line)",
    "lines = [line for line in process.stderr]",
    "subprocess.run(['true'], check=True)",
    "subprocess.check_output(['true'], timeout=None)",
    "condition.wait_for(lambda: done)",
    "fcntl.flock(file, fcntl.LOCK_EX)",
    "os.waitpid(child, 0)",
    "lines = queue.Queue()\nlines.get()",
    "lines: Queue[str] = Queue()\nlines.get(True)",
    "class Lines:\n  lines = SimpleQueue()\n  def next(self):\n    return self.lines.get()",
    "def read(lines: Queue[str]):\n    return lines.get(block=True)",
    "lines = Queue()\nlines.join()",
    "import concurrent.futures\nfuture.result()",
    "asyncio.run_coroutine_threadsafe(ask(), loop).result()",
    "with concurrent.futures.ThreadPoolExecutor(2) as pool: pool.submit(work)",
    "threading.Thread(target=event.wait).start()",
    "Thread(None, thread.join).start()",
    "async def test():\n    await event.wait()",
    "async def test():\n    await asyncio.to_thread(event.wait)",
    "async def test():\n    await loop.run_in_executor(None, thread.join)",
    "async def test():\n    await asyncio.wait({task})",
    "async def test():\n    await asyncio.wait_for(event.wait(), None)",
    "async def test():\n    await asyncio.wait_for(event.wait(), timeout=None)",
    "async def test():\n    await asyncio.gather(event.wait(), ask())",
    "async def test():\n    await asyncio.gather(*[event.wait() for event in events])",
    "async def test():\n    task = asyncio.create_task(process.communicate())",
    "async def test():\n    async with asyncio.timeout(None):\n        await event.wait()",
    "async def test():\n    async with asyncio.timeout(60):\n        process.wait()",
    "async def test():\n    async with asyncio.timeout(60):\n        process.stdout.readline()",
    "async def test():\n  async with timeout(60):\n    async def f():\n      await event.wait()",
    "async def test():\n    lines: asyncio.Queue[str] = asyncio.Queue()\n    await lines.get()",
]
ACCEPTED = [
    "', '.join(words)",
    "thread.join(60)",
    "thread.join(timeout=60)",
    "process.wait(60)",
    "event.wait(timeout=SECONDS)",
    "lock.acquire(False)",
    "lock.acquire(blocking=False)",
    "lock.acquire(True, 60)",
    "lock.acquire(timeout=60)",
    "process.communicate(timeout=60)",
    "process.communicate(b'text', 60)",
    "subprocess.run(['true'], check=True, timeout=60)",
    "condition.wait_for(lambda: done, 60)",
    "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "fcntl.flock(file, fcntl.LOCK_UN)",
    "os.waitpid(child, os.WNOHANG)",
    "with program.limited_reads(): program.stdout.readline()",
    "with program.limited_reads(9): program.stdout.read(3)",
    "for line in subprocess.run(['true'], timeout=60).stdout.splitlines(): print(line)",
    "lines = Queue()\nlines.get(timeout=60)",
    "lines = Queue()\nlines.get(block=False)",
    "lines = Queue()\nlines.get_nowait()",
    "lines = Queue()\nSession.objects.get()",
    "import concurrent.futures\nfuture.result(60)",
    "task.result()",
    "with thread_pool(2) as pool: pool.submit(work)",
    "threading.Thread(target=event.wait, args=(60,)).start()",
    "threading.Thread(target=server.serve_forever).start()",
    "async def test():\n    await asyncio.to_thread(event.wait, 60)",
    "async def test():\n    await asyncio.to_thread(semaphore.acquire, timeout=60)",
    "async def test():\n    await loop.run_in_executor(None, thread.join, 60)",
    "async def test():\n    await asyncio.wait({task}, timeout=60)",
    "async def test():\n    await asyncio.wait_for(event.wait(), 60)",
    "async def test():\n    await asyncio.wait_for(asyncio.gather(one.wait(), two.wait()), 60)",
    "async def test():\n    async with asyncio.timeout(60):\n        await event.wait()",
    "async def test():\n  async with open() as a, timeout(60):\n    await gather(*map(ask, a))",
    "async def test():\n  async with timeout(60):\n    await gather(*(e.wait() for e in events))",
    "async def test():\n    await page.locator('p').wait_for(state='hidden')",
    "async def test():\n    await result.join()",
    "daemon.wait_for('is connected')",
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_wait_without_a_limit_is_refused(text: str) -> None:
    assert waits_of(text) != []


@pytest.mark.parametrize("text", ACCEPTED)
def test_bounded_waits_and_calls_that_do_not_wait_are_accepted(text: str) -> None:
    assert waits_of(text) == []


def test_a_wait_is_named_with_its_line() -> None:
    text = """
        def test() -> None:
            with running() as process:
                process.wait()
    """
    assert waits_of(textwrap.dedent(text)) == [(4, "process.wait()")]
