"""A supervised Celery worker for one queue: a child process, restarted when it dies.

The child never outlives its parent: its standard input is a pipe that only the parent holds open,
and on Linux the kernel kills it together with the thread that started it. A tool that was running
is not lost: its row has a lease, and the next worker takes over.
"""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

from celery.exceptions import SecurityWarning
from django.conf import settings

from uamp_project.celery import app

logger = logging.getLogger(__name__)

# Per queue: a tool runs in a separate process, a webhook waits for its receiver, and a reading
# waits for a page or for the transcription server.
THREADS = {"tools": 4, "webhooks": 16, "readings": 4}
BACKOFF_SECONDS = (0.5, 30.0)
# A child that ran this long had started well, so that the next failure restarts the backoff.
STABLE_SECONDS = 60.0
STOP_SECONDS = 5.0
KILL_SECONDS = 5.0

PR_SET_PDEATHSIG = 1


def queues_with_work() -> list[str]:
    """Return the queues that have work under the current settings."""
    has_readings = settings.UAMP_LINK_CARDS or settings.UAMP_TRANSCRIPTION_URL
    names = [queue.name for queue in settings.CELERY_TASK_QUEUES]
    return [name for name in names if name != "readings" or has_readings]


class WorkerSupervisor:
    """Keeps one worker process of a queue running, from `start` to `stop`.

    The serving thread calls `start` and `stop`, each once. A separate thread starts, watches and
    ends the worker.
    """

    def __init__(self, queue: str, *, threads: int | None = None) -> None:
        self._queue = queue
        self._threads = threads or THREADS[queue]
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        # This thread starts the child and lives as long as it does, because the kernel's
        # parent-death signal follows the thread, not the process.
        self._thread = threading.Thread(target=self._supervise, name=f"{queue}-supervisor")

    @property
    def pid(self) -> int | None:
        """The process id of the worker, if it is running."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the worker and watch it."""
        self._thread.start()

    def stop(self) -> None:
        """Terminate the worker, kill it after STOP_SECONDS, and wait until it is gone."""
        self._stopping.set()
        self._thread.join(2 * STOP_SECONDS + KILL_SECONDS)
        if self._thread.is_alive():
            logger.error("the worker of %s (process %s) does not end", self._queue, self.pid)

    def _supervise(self) -> None:
        pause, longest = BACKOFF_SECONDS
        while not self._stopping.is_set():
            started = time.monotonic()
            self._process = self._spawn()
            while self._process.poll() is None and not self._stopping.wait(0.2):
                pass
            if self._stopping.is_set():
                break
            if time.monotonic() - started > STABLE_SECONDS:
                pause = BACKOFF_SECONDS[0]
            logger.error(
                "the worker of %s ended with %s; starting it again in %.1f s",
                self._queue,
                self._process.returncode,
                pause,
            )
            self._forget()
            self._stopping.wait(pause)
            pause = min(pause * 2, longest)
        if self._process is not None:
            self._end(self._process)
            self._forget()

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 our own interpreter and module
            [sys.executable, "-m", __name__, self._queue, str(self._threads)],
            stdin=subprocess.PIPE,
            env={**os.environ, "UAMP_LAYER_ROLE": "spoke"},
            # Ctrl-C in the terminal is for the parent, which ends the child in order.
            start_new_session=True,
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            try:
                process.wait(KILL_SECONDS)
            except subprocess.TimeoutExpired:
                logger.exception("the worker of %s could not be killed", self._queue)

    def _forget(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
        self._process = None


def _die_with_parent() -> None:
    """End this process as soon as the other end of standard input closes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def main() -> None:
    """Run the worker of the queue in argv until SIGTERM, or until the parent is gone."""
    _die_with_parent()
    # Tasks arrive as JSON from the same user; running as root is the parent's choice.
    warnings.simplefilter("ignore", SecurityWarning)
    app.worker_main(
        [
            "--quiet",
            "worker",
            "--pool=threads",
            f"--queues={sys.argv[1]}",
            f"--hostname={sys.argv[1]}@%h",
            f"--concurrency={sys.argv[2]}",
            "--loglevel=WARNING",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )


if __name__ == "__main__":
    main()
