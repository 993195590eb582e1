"""`manage.py verify_log [CHAT ...]`: verify the logs of chats by their hash chains."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chat_app.log.verification import all_chats, check_log
from sessions_app.changed_answers import changed_answers
from uamp.log_check import SENTENCES, LogProblem, LogProblemKind, LogSummary
from uamp_project.management.migrated import require_migrations


class Command(BaseCommand):
    """Reads every entry and message of the chats while the server runs; changes nothing."""

    help = (
        "Check that no entry of a chat's log was changed, removed or put in since it was written,"
        " and that its messages and answers are those of the log (docs/log-chain.md). Without CHAT"
        " it checks all chats. It ends with 1 where one was changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the ids of chats."""
        parser.add_argument("chat", nargs="*", help="the id of a chat; all chats without one")

    def handle(self, *_: Any, **options: Any) -> None:
        """Verify the logs; with `--verbosity 2`, print a line for each chat."""
        require_migrations()
        checked = entries = unchained = erased = changed = 0
        for chat_id in options["chat"] or all_chats():
            summary = check_log(chat_id)
            if summary is None:
                if options["chat"]:
                    raise CommandError(f"There is no chat {chat_id}.")
                continue
            checked += 1
            entries += summary.entries
            unchained += summary.unchained
            erased += summary.erased
            changed += not summary.is_intact
            answers = list(changed_answers(chat_id, last_seq=summary.last_seq))
            changed += bool(answers) and summary.is_intact
            self._report(chat_id, summary, answers, every=options["verbosity"] > 1)
        outside = f" {unchained} of them are in no chain: they are older." if unchained else ""
        if erased:
            outside += f" {erased} of them are covered by a digest alone: a person was erased."
        self.stdout.write(f"{checked} chats, {entries} entries.{outside}")
        if changed:
            raise CommandError(f"The logs of {changed} chats were changed.")
        self.stdout.write("No log was changed.")

    def _report(
        self, chat_id: str, summary: LogSummary, answers: list[int], *, every: bool
    ) -> None:
        rows = [LogProblem(kind=LogProblemKind.ANSWER_CHANGED, seq=seq) for seq in answers]
        for problem in (*summary.problems, *rows):
            sentence = SENTENCES[problem.kind]
            self.stdout.write(f"{chat_id}#{problem.seq}: {problem.kind}. {sentence}")
        if (more := summary.problem_count - len(summary.problems)) > 0:
            self.stdout.write(f"{chat_id}: {more} more problems")
        if every and summary.is_intact and not answers:
            erased = f", {summary.erased} with erased bodies" if summary.erased else ""
            head = summary.chain_hash or "no chain"
            self.stdout.write(f"{chat_id}: intact, {summary.entries} entries{erased}, {head}")
