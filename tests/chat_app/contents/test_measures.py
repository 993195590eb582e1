"""Files are measured in processes with limits; what does not fit into them is not measured."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.workers.child_processes import ChildProcesses, NoneFree
from chat_app.contents import extents, measures, storage
from chat_app.contents.measures import UNMEASURED, MeasuringBusy, measure
from chat_app.contents.quota import ContentOwner
from chat_app.models import Content
from tests import factories
from tests.chat_app.contents.pdf_files import pdf, tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django import Settings

SECOND = b"\xff\xf3\x14\xc0" + bytes(20)


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildProcesses]:
    """Give each test processes of its own."""
    own_processes = ChildProcesses("chat_app.contents.measures")
    monkeypatch.setattr(measures, "_processes", own_processes)
    yield own_processes
    own_processes.close()


@pytest.fixture
def owner(settings: Settings, tmp_path: Path) -> ContentOwner:
    settings.MEDIA_ROOT = tmp_path
    return ContentOwner(user_id=factories.user().pk)


def test_a_file_is_measured_in_another_process(processes: ChildProcesses) -> None:
    assert measure(SECOND * 1_000, "audio/mpeg", asker="a") == 24_000
    assert measure(pdf(tree(3)), "application/pdf", asker="a") == 3
    assert len(processes._all) == 1


def test_a_file_that_takes_too_much_of_a_processor_is_not_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measures, "CPU_SECONDS", 0.02)
    assert int(measures._measured(b"audio/mpeg\0" + SECOND * 400_000)) == UNMEASURED
    assert int(measures._measured(b"audio/mpeg\0" + SECOND)) == 24
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0


def test_a_file_that_takes_too_long_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "MEASURE_SECONDS", 0.001)
    assert measure(SECOND * 400_000, "audio/mpeg", asker="a") == UNMEASURED
    monkeypatch.undo()
    assert measure(SECOND, "audio/mpeg", asker="a") == 24


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_a_file_that_needs_too_much_memory_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: Any) -> int:
        raise error

    monkeypatch.setattr(measures, "longest_ms", fail)
    assert int(measures._measured(b"audio/mpeg\0x")) == UNMEASURED


@pytest.mark.django_db
def test_a_file_that_finds_no_process_is_stored_and_measured_when_it_is_used(
    owner: ContentOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_free(*_: Any, **__: Any) -> bytes:
        raise NoneFree

    monkeypatch.setattr(measures._processes, "ask", none_free)
    stored = storage.store(SECOND * 10, mime_type="audio/mpeg", filename="a.mp3", owner=owner)
    assert stored.extent is None
    with pytest.raises(MeasuringBusy):
        extents.extents_of([str(stored.pk)])
    assert Content.objects.get().extent is None
    monkeypatch.undo()
    (stored_extent,) = extents.extents_of([str(stored.pk)])[str(stored.pk)]
    assert (stored_extent.amount, Content.objects.get().extent) == (240, 240)
