"""Tables in CSV: their text, separator, columns and numbers."""

import pytest

from agents_app.tools.csv_table import decode, describe, parse


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é\n".encode(), "é\n"),
        ("é\n".encode("utf-8-sig"), "é\n"),
        ("é\n".encode("cp1252"), "é\n"),
        ("é\n".encode("utf-16"), "é\n"),
    ],
)
def test_text_is_decoded_as_it_was_saved(data: bytes, text: str) -> None:
    assert decode(data).text == text


def test_names_are_made_up_and_distinguished_and_rows_fitted() -> None:
    table = parse("a,,a\n1\n1,2,3,4\n\n5,6,7\n", on_rows=print)
    assert table.columns == {
        "a": ["1", "1", "5"],
        "column 2": ["", "2", "6"],
        "a (3)": ["", "3", "7"],
    }
    assert (table.rows, table.ragged) == (3, 2)


def test_no_column_is_lost_whatever_the_columns_are_called() -> None:
    table = parse("a,a (3),a,a\n1,2,3,4\n", on_rows=print)
    assert list(table.columns.values()) == [["1"], ["2"], ["3"], ["4"]]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [("a,b\n1,2", ","), ("a;b\n1;2", ";"), ("a\tb\n1\t2", "\t"), ('"x;y;z",b\n1,2', ",")],
)
def test_the_separator_is_found(text: str, delimiter: str) -> None:
    assert parse(text, on_rows=print).delimiter == delimiter


@pytest.mark.parametrize(
    ("values", "delimiter", "kind"),
    [
        (["1", "-2.5", "+.5", "1e3", ""], ",", "number"),
        (["1,5", "2"], ";", "number"),
        (["1,5", "2"], ",", "text"),
        (["1", "n/a"], ",", "text"),
        (["nan", "inf"], ",", "text"),
        (["1_000"], ",", "text"),
        (["٣"], ",", "text"),
        (["2026-01-01", "2026-01-02T10:00"], ",", "date"),
        (["2026-13-01"], ",", "text"),
        (["", ""], ",", "empty"),
    ],
)
def test_a_column_has_a_kind(values: list[str], delimiter: str, kind: str) -> None:
    assert describe("a", values, delimiter=delimiter).kind == kind


@pytest.mark.parametrize(
    ("values", "delimiter", "numbers"),
    [
        (["1.234,56", "7,5"], ";", (1234.56, 7.5)),
        (["1.234,56", "12"], ",", (1234.56, 12)),
        (["1,234.56", "12"], ",", (1234.56, 12)),
        (["1,234", "5"], ",", (1234, 5)),
        (["1,234", "1,500.75"], ";", (1234, 1500.75)),
        (["1.234.567", "2,5"], "\t", (1234567, 2.5)),
        (["12,34,567.50", "1,000"], ",", (1234567.5, 1000)),
        (["1 234,5", "1\u202f234,5", "1\u00a0234"], ";", (1234.5, 1234.5, 1234)),
        (["1'234.50", "1\u2019000"], ";", (1234.5, 1000)),
        (["$5.00", "$1,250.00", "-$3"], ",", (5, 1250, -3)),
        (["5,00 €", "1.250,00 €", "-3 €"], ";", (5, 1250, -3)),
        (["US$5", "US$6"], ",", (5, 6)),
        (["5 EUR", "6"], ",", (5, 6)),
        (["CHF 5.00", "CHF 1'000.00"], ",", (5, 1000)),
        (["\u00a51200", "\u00a5800"], ",", (1200, 800)),
        (["5 %", "12.5%", "7"], ",", (5, 12.5, 7)),
        (["5,5 %", "12%"], ";", (5.5, 12)),
        (["(12)", "12"], ",", (-12, 12)),
        (["($1,200.50)", "$3"], ",", (-1200.5, 3)),
        (["\u22125", "+5"], ",", (-5, 5)),
        (["5-", "1,234.50-", "3"], ",", (-5, -1234.5, 3)),
        (["5,00- €", "1.250,00-"], ";", ()),
        (["5,00 €-", "1.250,00 €"], ";", (-5, 1250)),
        (["\uff15", "\uff11\uff12\uff0e5"], ",", (5, 12.5)),
        (["\uff0550", "3\uff05"], ",", (50, 3)),
        (["\u00a51,200", "\uffe5800"], ",", (1200, 800)),
        (["Rs. 500", "Rs 1,00,000"], ",", (500, 100000)),
        (["R$ 5,00", "R$ 1.250,00"], ";", (5, 1250)),
        (["5,00 kr", "6 kr"], ";", (5, 6)),
        (["1 234,50 zł", "2 zł"], ";", (1234.5, 2)),
        (["CA$5", "CA$6"], ",", (5, 6)),
        (["+5%", "-3%"], ",", (5, -3)),
        (["1.000,00", "1.000"], ";", (1000, 1000)),
        # No numbers: another unit, another sign, codes, dates, telephones.
        (["$5", "3 €"], ",", ()),
        (["5 %", "$5"], ",", ()),
        (["1,5", "2"], ",", ()),
        (["1,23", "1.5"], ";", ()),
        (["1.2.3", "2"], ";", ()),
        (["12.05.2024"], ";", ()),
        (["030 123 456"], ";", ()),
        (["SKU100", "SKU101"], ",", ()),
        (["(12"], ",", ()),
        (["(5-)"], ",", ()),
        (["-5-"], ",", ()),
        (["$1.2M", "1k"], ",", ()),
        (["1/2"], ",", ()),
        (["12:30"], ",", ()),
        (["12/31/2024"], ",", ()),
        (["0x1f"], ",", ()),
        (["N/A", "5"], ",", ()),
        (["5 apples"], ",", ()),
        ([""], ",", ()),
    ],
)
def test_numbers_are_read_as_people_write_them(
    values: list[str], delimiter: str, numbers: tuple[float, ...]
) -> None:
    column = describe("a", values, delimiter=delimiter)
    assert column.numbers == numbers
    assert (column.kind == "number") == bool(numbers)


@pytest.mark.parametrize(
    ("text", "delimiter", "names"),
    [
        ("sep=;\na;b\n1;2\n", ";", ["a", "b"]),
        ("sep=,\r\na,b\r\n1,2\r\n", ",", ["a", "b"]),
        ('"sep=;"\na;b,c\n1;2\n', ";", ["a", "b,c"]),
        ("SEP=\t\na\tb\n1\t2\n", "\t", ["a", "b"]),
        ("sep=^\na^b\n1^2\n", "^", ["a", "b"]),
        ("sep=;;;\na;b\n1;2\n", ";", ["a", "b"]),
        ("sep=,,\r\na,b\r\n1,2\r\n", ",", ["a", "b"]),
        ("sep=|\r\n\r\na|b\r\n1|2", "|", ["a", "b"]),
        ("sep=\na,b\n1,2", ",", ["sep="]),
        ('"a","b"\n"1","2"', ",", ["a", "b"]),
        ("a,b\r1,2\r", ",", ["a", "b"]),
        ("separator;b\n1;2\n", ";", ["separator", "b"]),
        ("name;price, EUR, net, old\nx;1\ny;2\n", ";", ["name", "price, EUR, net, old"]),
        ('a,"b;c;d;e"\n1,2\n', ",", ["a", "b;c;d;e"]),
        ("a;b\n1,5;2,5\n1,5;2,5\n", ";", ["a", "b"]),
        ("a\n1\n", ",", ["a"]),
    ],
)
def test_the_line_that_names_the_separator_is_not_a_row(
    text: str, delimiter: str, names: list[str]
) -> None:
    table = parse(text, on_rows=print)
    assert (table.delimiter, list(table.columns)) == (delimiter, names)


def test_an_empty_column_has_no_facts() -> None:
    assert describe("a", [""], delimiter=",").facts == ("", "", "")
