"""`manage.py audit_log [CHAT ...]`: verify the logs of chats, and the tree of their heads."""

from argparse import ArgumentParser
from itertools import islice
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chat_app.log.verification import all_chats, check_log
from chat_app.log_tree import checking
from sessions_app.changed_answers import changed_answers
from uamp.logs.check import PROBLEMS_MAX, SENTENCES, LogProblem, LogProblemKind, LogSummary
from uamp.logs.spool import TMPDIR_ADVICE, SpoolError
from uamp_project.management.migrated import require_migrations


class Command(BaseCommand):
    """Reads every entry and message of the chats while the server runs; changes nothing."""

    help = (
        "Check that no entry of a chat's log has been changed, removed or inserted since it was"
        " written, and that its messages and answers match the log (docs/log-chain.md). Without"
        " CHAT it checks all chats, and the tree of their signed heads (docs/log-tree.md). Exits"
        " with status 1 if anything was changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the ids of chats."""
        parser.add_argument("chat", nargs="*", help="the id of a chat; by default all chats")

    def handle(self, *_: Any, **options: Any) -> None:
        """Verify the logs; with `--verbosity 2`, print a line for each chat."""
        require_migrations()
        checked = entries = unchained = erased = changed = 0
        for chat_id in options["chat"] or all_chats():
            try:
                summary = check_log(chat_id)
            except SpoolError as error:
                raise CommandError(f"{error}. {TMPDIR_ADVICE}") from None
            if summary is None:
                if options["chat"]:
                    raise CommandError(f"There is no chat {chat_id}.")
                continue
            checked += 1
            entries += summary.entries
            unchained += summary.unchained
            erased += summary.erased
            changed += not summary.is_intact
            changes = changed_answers(chat_id, last_seq=summary.last_seq)
            answers = list(islice(changes, PROBLEMS_MAX))
            more = sum(1 for _ in changes)
            changed += bool(answers) and summary.is_intact
            self._report(chat_id, summary, answers, more, every=options["verbosity"] > 1)
        outside = (
            f" {unchained} of them are outside the chain: they are older." if unchained else ""
        )
        if erased:
            outside += f" {erased} of them are covered only by a digest: a person was erased."
        self.stdout.write(f"{checked} chats, {entries} entries.{outside}")
        is_tree_intact = bool(options["chat"]) or self._check_tree()
        if changed:
            raise CommandError(f"The logs of {changed} chats were changed.")
        if not is_tree_intact:
            raise CommandError("The tree of log heads was changed.")
        self.stdout.write("No log was changed.")

    def _check_tree(self) -> bool:
        """Check the tree, and return whether it is intact."""
        report = checking.check_tree()
        for problem in report.problems:
            sentence = checking.SENTENCES[problem.kind]
            self.stdout.write(f"tree#{problem.at}: {problem.kind}. {sentence}")
        if (more := report.problem_count - len(report.problems)) > 0:
            self.stdout.write(f"tree: {more} more problems")
        gone = f" ({report.orphans} of deleted chats)" if report.orphans else ""
        self.stdout.write(
            f"Tree: {report.leaves} log heads{gone}, {report.checkpoints} checkpoints"
            f" ({report.cosigned} cosigned)."
        )
        return report.is_intact

    def _report(
        self, chat_id: str, summary: LogSummary, answers: list[int], more: int, *, every: bool
    ) -> None:
        """Print what was found in a chat; `more` changed answers are not in the list."""
        rows = [LogProblem(kind=LogProblemKind.ANSWER_CHANGED, seq=seq) for seq in answers]
        for problem in (*summary.problems, *rows):
            sentence = SENTENCES[problem.kind]
            self.stdout.write(f"{chat_id}#{problem.seq}: {problem.kind}. {sentence}")
        more += summary.problem_count - len(summary.problems)
        if more:
            self.stdout.write(f"{chat_id}: {more} more problems")
        if every and summary.is_intact and not answers:
            erased = f", {summary.erased} with erased bodies" if summary.erased else ""
            head = summary.chain_hash or "no chain"
            self.stdout.write(f"{chat_id}: intact, {summary.entries} entries{erased}, {head}")
