"""The tool csv_report: real CSV in, a summary and a real PNG out."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agents_app.tools import csv_table
from agents_app.tools.csv_report import csv_report
from agents_app.tools.csv_table import decode, describe, parse
from agents_app.tools.registry import ToolCancelled, ToolError, ToolOutcome
from tests.agents_app.run_context import CSV_ID, Context
from uamp.types.content import ImageContent

SALES = b"""day,region,units,price
2026-01-01,north,3,9.50
2026-01-02,south,5,8.25
2026-01-03,north,,7
"""
SUMMARY = """\
**sales.csv** has 3 rows and 4 columns.

| column | kind | filled | different | smallest | largest | typical |
|---|---|---:|---:|---:|---:|---|
| day | date | 3 | 3 | 2026-01-01 | 2026-01-03 |  |
| region | text | 3 | 2 |  |  | “north” in 2 of 3 |
| units | number | 2 | 2 | 3 | 5 | mean 4 |
| price | number | 3 | 3 | 7 | 9.5 | mean 8.25 |

The chart shows price over day."""


def run(context: Context) -> ToolOutcome:
    return csv_report.run(context, {"content_id": CSV_ID})


def picture(context: Context) -> Image.Image:
    ((data, mime_type, _name),) = context.written
    assert mime_type == "image/png"
    image = Image.open(io.BytesIO(data))
    image.load()
    assert image.format == "PNG"
    assert image.size == (1200, 675)
    return image


def test_a_file_becomes_a_summary_and_a_chart() -> None:
    context = Context(data=SALES)
    outcome = run(context)
    assert outcome.result == SUMMARY
    assert not outcome.is_error
    (item,) = outcome.content_items
    assert isinstance(item, ImageContent)
    assert item.alt_text == "Chart: price over day"
    assert context.written[0][2] == "sales-chart.png"
    colors = picture(context).convert("RGB").getcolors(1 << 20)
    assert colors is not None
    assert max(colors)[1] == (255, 255, 255)
    assert (37, 99, 235) in [color for _, color in colors]


def test_progress_goes_up_column_by_column() -> None:
    context = Context(data=SALES)
    run(context)
    stages = [reported["stage"] for reported in context.reported]
    assert stages == ["read", "parse", *["statistics"] * 4, "chart", "write", "done"]
    percents = [reported["percent"] for reported in context.reported]
    assert percents == sorted(percents)
    assert percents[-1] == 100
    assert [reported["step"] for reported in context.reported] == [1, 2, 3, 4, 5, 6, 7, 8, 8]
    assert context.reported[2]["message"] == "Column 1 of 4: day"


@pytest.mark.parametrize("stage", ["read", "parse", "statistics", "chart", "write"])
def test_a_cancelled_call_writes_nothing(stage: str) -> None:
    context = Context(data=SALES, cancel_at=stage)
    with pytest.raises(ToolCancelled):
        run(context)
    assert context.written == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("data", "shows"),
    [
        (b"day,a,b\n2026-01-02,1,2\n2026-01-01,3,4\n", "a, b over day"),
        (b"city,people\nRome,3\nParis,2\n", "people of each city"),
        (b"a;b\n1,5;x\n2,5;y\n", "a of each b"),
        (b"city,people\nRome,3\nParis,\n", "how the values of people are distributed"),
        (b"day,a\n2026-01-02,1\n,3\n", "how the values of a are distributed"),
        (b"n\n1\n1\n1\n", "how the values of n are distributed"),
        (b"answer\nyes\nno\nyes\n", "how often the values of answer occur"),
        (b"a,b\n,\n", "how often the values of a occur"),
        ("名前,$x^{$\n太郎,1\n$\\frac,2\n".encode(), "$x^{$ of each 名前"),
        (b"a|a|\n1|2|3\n", "how the values of a are distributed"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_the_chart_follows_from_the_columns(data: bytes, shows: str) -> None:
    context = Context(data=data)
    (item,) = run(context).content_items
    assert isinstance(item, ImageContent)
    assert item.alt_text == f"Chart: {shows}"
    picture(context)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("data", "shows"),
    [
        (b"until,a\n0001-01-01,1\n9999-12-31,2\n", "how the values of a are distributed"),
        (b"until\n9999-12-31\n9999-12-31\n", "how often the values of until occur"),
        (b"id\n1234567890123456789\n1234567890123456789\n", "how often the values of id occur"),
        (b"id,a\n1234567890123456789,1\n", "how the values of a are distributed"),
        (b"a\n1.7e308\n-1.7e308\n", "how often the values of a occur"),
        (b"a\n5e-324\n0\n", "how often the values of a occur"),
        (b"a\n1e999\n2\n", "how often the values of a occur"),
        (b"a,b\n" + b"9" * 400 + b",2\n", "b of each a"),
    ],
)
def test_values_that_no_axis_can_hold_are_a_report_too(data: bytes, shows: str) -> None:
    context = Context(data=data)
    (item,) = run(context).content_items
    assert isinstance(item, ImageContent)
    assert item.alt_text == f"Chart: {shows}"
    picture(context)


def test_what_is_reported_of_a_column_is_short_however_long_its_name_is() -> None:
    context = Context(data=b"n" * 100_000 + b"\n1\n")
    run(context)
    assert context.reported[2]["message"] == f"Column 1 of 1: {'n' * 39}…"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"only,names\n", "no rows below"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not text"),
        (b"PK\x03\x04\x14\x00", "not text"),
        (b"a\n\x81\x8d\n", "not text"),
        (b"\xff\xfea\x00b", "not text"),
        (b'a,b\n1,"2\n', "cannot be read"),
        (b'a,b\n1,"2"x\n', "Line 2"),
        (b"a\n" + b"x" * 140_000, "cannot be read"),
    ],
)
def test_a_file_without_a_table_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    context = Context(data=data)
    with pytest.raises(ToolError, match=reason):
        run(context)
    assert context.written == []


@pytest.mark.parametrize(
    ("limit", "value", "data", "reason"),
    [
        ("MAX_BYTES", 1024 * 1024, b"a\n" + b"1\n" * 600_000, "larger than 1 MB"),
        ("MAX_ROWS", 2, b"a\n1\n2\n3\n", "more than 2 rows"),
        ("MAX_COLUMNS", 2, b"a,b,c\n1,2,3\n", "more than 2 columns"),
    ],
)
def test_a_file_beyond_a_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, data: bytes, reason: str
) -> None:
    monkeypatch.setattr(csv_table, limit, value)
    with pytest.raises(ToolError, match=reason):
        run(Context(data=data))


def test_a_file_at_the_limits_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_table, "MAX_ROWS", 2)
    monkeypatch.setattr(csv_table, "MAX_COLUMNS", 2)
    monkeypatch.setattr(csv_table, "MAX_BYTES", 12)
    assert "2 rows" in run(Context(data=b"a,b\n1,2\n3,4\n")).result


def test_many_rows_give_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_table, "ROWS_PER_STEP", 2)
    context = Context(data=b"a\n1\n2\n3\n4\n5\n")
    run(context)
    reported = [
        reported["message"] for reported in context.reported if reported["stage"] == "parse"
    ]
    assert reported == ["Parsing sales.csv", "Read 2 rows", "Read 4 rows"]


@pytest.mark.parametrize("arguments", [{}, {"content_id": ""}, {"content_id": 7}])
def test_a_call_without_a_file_is_refused(arguments: dict[str, Any]) -> None:
    context = Context(data=SALES)
    outcome = csv_report.run(context, arguments)
    assert outcome.is_error
    assert "`content_id`" in outcome.result or "`$.content_id`" in outcome.result
    assert (context.reported, context.written) == ([], [])


def test_an_unknown_file_is_the_contexts_word() -> None:
    with pytest.raises(ToolError, match="no such content"):
        csv_report.run(Context(), {"content_id": "another"})


def test_rows_of_another_length_are_reported() -> None:
    report = run(Context(data=b"a,b\n1\n")).result
    assert "has 1 row and 2 columns. Rows with too few or too many values: 1." in report


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("encoding", "name", "text"),
    [
        ("cp932", "Shift-JIS", "日付;金額\n2024/05/01;1200\n東京;300\n"),
        ("cp932", "Shift-JIS", "a,b\n東京,1\n"),
        ("cp932", "Shift-JIS", "商品コード,\uff92\uff93\n1,\uff71\uff72\uff73\n"),
        ("gbk", "GBK", "日期,金额\n北京,1200\n上海,300\n"),
        ("gbk", "GBK", "姓名,年龄\n张三,12\n李四,30\n"),
        ("gbk", "GBK", "a,b\n北京,1\n"),
        ("gbk", "GBK", "日期,金额\n北京,1\n"),
        ("gbk", "GBK", "产品名称,销售数量,单价\n苹果手机,三千,五百\n"),
        ("cp949", "EUC-KR", "이름,나이\n김철수,12\n"),
        ("cp949", "EUC-KR", "제품명,판매량,가격\n휴대전화,삼천,오백\n회사,외부,됐다\n"),
        ("big5", "Big5", "姓名,年齡\n陳大文,30\n"),
        ("cp949", "EUC-KR", "날짜,금액\n서울,1200\n"),
        ("cp1252", "Windows-1252", "Größe;Preis €\nMüller;3,5\n"),
        ("cp1252", "Windows-1252", "name\nJosé\n"),
        ("utf-16-le", "UTF-16", "a,b\n1,2\n"),
        ("utf-16-be", "UTF-16", "名前,年\n山田,1\n"),
        ("utf-16-le", "UTF-16", "名前,年\n山田,1\n"),
        ("utf-32-le", "UTF-32", "Größe;b\n1;2\n"),
        ("utf-32-be", "UTF-32", "a\n1\n"),
        (
            "cp1251",
            "Windows-1251",
            "\u0414\u0430\u0442\u0430;b\n\u041c\u043e\u0441\u043a\u0432\u0430;300\n",
        ),
    ],
)
def test_an_encoding_that_nothing_says_is_found_and_named(
    encoding: str, name: str, text: str
) -> None:
    assert decode(text.encode(encoding))[:2] == (text, name)
    report = run(Context(data=text.encode(encoding))).result
    assert f"It was read as {name}" in report


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("koi8_r", "\u0414\u0430\u0442\u0430,b\n\u041c\u043e\u0441,1\n"),
        ("cp866", "\u0414\u0430\u0442\u0430;b\n\u041c\u043e\u0441;1\n"),
        ("cp1250", "M\u011bsto;b\n\u017d\u010f\u00e1r;3\n"),
        ("cp1253", "\u038c\u03bd\u03bf\u03bc\u03b1;b\n\u0391\u03b8;1\n"),
        ("cp1255", "\u05e9\u05dd;b\n\u05d9;1\n"),
        ("cp1256", "\u0627\u0644\u0627\u0633\u0645;b\n\u0627;1\n"),
        ("cp874", "\u0e0a\u0e37\u0e48\u0e2d,b\n\u0e01,1\n"),
        ("mac_roman", "Größe;Preis\nMüller;3\n"),
        ("cp850", "Größe;Preis\nMüller;3\n"),
        ("euc_jp", "\u540d\u524d,b\n\u5c71\u7530,1\n"),
    ],
)
def test_an_encoding_that_is_not_known_is_never_guessed_without_a_word(
    encoding: str, text: str
) -> None:
    report = run(Context(data=text.encode(encoding))).result
    assert "It was read as " in report
    assert "save it as UTF-8" in report


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_encoding_that_is_known_is_not_named(encoding: str) -> None:
    text = "Größe,b\n1,2\n"
    assert decode(text.encode(encoding)) == (text, "", True)
    assert "It was read as" not in run(Context(data=text.encode(encoding))).result


def test_a_guessed_encoding_is_marked_as_a_guess() -> None:
    report = run(Context(data="Mesto;Po\u010det\n\u017d\u010f\u00e1r;3\n".encode("cp1250"))).result
    assert "It was read as Windows-1252, which is not certain" in report


def test_a_cell_cannot_leave_the_table() -> None:
    result = run(Context(data=b"a|b [x](y),c,d\n<b>bold,1,2\n", filename="*s*.csv")).result
    assert "| a\\|b \\[x\\]\\(y\\) |" in result
    assert "\\<b\\>bold" in result
    assert result.startswith("**\\*s\\*.csv**")


def test_a_long_value_is_shortened() -> None:
    assert f"| {'n' * 39}… |" in run(Context(data=b"n" * 100 + b"\n1\n")).result


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_a_tool_error(data: bytes) -> None:
    try:
        table = parse(decode(b"a,b\n" + data).text, on_rows=print)
    except ToolError:
        return
    for name, values in table.columns.items():
        assert describe(name, values, delimiter=table.delimiter).filled <= table.rows
