"""Debits an account by one unit, again and again: `ledger_debits FROM TO COUNT PREFIX`.

Prints how many were done. Several of these at once may not take more than there is.
"""

import sys

import django


def main(debit: int, credit: int, count: int, prefix: str) -> int:
    """Try so many debits; return how many were done."""
    from payments_app import services  # noqa: PLC0415 after django.setup
    from payments_app.money import Money  # noqa: PLC0415 as above

    done = 0
    for number in range(count):
        try:
            services.transfer(key=f"{prefix}:{number}", debit=debit, credit=credit, amount=Money(1))
        except services.InsufficientFunds:
            continue
        done += 1
    return done


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(f"{main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])}\n")
