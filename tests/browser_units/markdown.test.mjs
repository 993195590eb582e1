import assert from "node:assert/strict";
import { test } from "node:test";
import { beginningOf, blocksOf } from "../../static/chat/markdown/parser.js";
import { previewOf, tableOf } from "../../static/chat/parts/preview.js";
import { textOf as fileText } from "../../static/chat/parts/file-text.js";
import { grown } from "../../static/chat/markdown/tail.js";

const ANSWER = `# Trees and sums

A *short* answer with **bold words**, ***both***, ~~struck~~, \`code\`, a [link](https://h.test/a_b?c=1), and $e^{i\\pi}+1=0$ for $5.
It has a second line with snake_case and 2 * 3 * 4, and an address <https://h.test/x>.

## Lists

- one **item**
- [x] a task that is done
- [ ] another

1. first
2. second
   - nested \`code\`

\`\`\`python
def walk(tree):
    return "**no mark**"
\`\`\`

| name | value |
|:-----|------:|
| one  | **1** |
| two  | \`2\` |

> A quote with \\(a^2\\) in it.

$$
\\sum_{n} n
$$

---

Setext
======

The end & more.
`;

const textOf = (blocks) =>
  blocks
    .map(({ html }) => html.replace(/<[^>]*>/g, ""))
    .join("\n")
    .replaceAll("&amp;", "&")
    .replaceAll("&quot;", '"')
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">");

test("a growing text shows no raw marks, and what it shows stays", () => {
  const inCode = '"**no mark**"';
  const whole = textOf(blocksOf(ANSWER)).replace(/\s+/g, "");
  for (let length = 1; length <= ANSWER.length; length += 1) {
    const text = ANSWER.slice(0, length);
    const { finished, last } = grown(text, true);
    const shown = textOf([...finished, ...last]);
    const plain = shown.replaceAll(inCode.slice(0, 1 + 13), "").replace(/return "[^\n]*/, "");
    assert.doesNotMatch(
      plain,
      /\*\*|~~|`|\]\(|^\s*#|^\s*[-+] |\||\$\$|\\\(|\[[ x]?\]|</m,
      `${JSON.stringify(text.slice(-30))}: ${shown}`,
    );
    assert.ok(
      whole.startsWith(shown.replace(/\s+/g, "")),
      `${JSON.stringify(text.slice(-30))}: ${JSON.stringify(shown.slice(-60))}`,
    );
  }
});

test("a block that is finished is drawn once, as it is in the whole text", () => {
  const whole = blocksOf(ANSWER).map(({ html }) => html);
  const env = {};
  const drawn = [];
  let from = 0;
  for (let length = 1; length <= ANSWER.length; length += 7) {
    const { finished, length: more } = grown(ANSWER.slice(from, length), true, env);
    drawn.push(...finished.map(({ html }) => html));
    from += more;
    assert.deepEqual(drawn, whole.slice(0, drawn.length));
  }
  drawn.push(
    ...[grown(ANSWER.slice(from), false, env)]
      .flatMap(({ finished, last }) => [...finished, ...last])
      .map(({ html }) => html),
  );
  assert.deepEqual(drawn, whole);
});

test("amounts are no formulas, and a formula without its end goes to the end of the text", () => {
  const html = (text) =>
    blocksOf(text)
      .map((block) => block.html)
      .join("");
  assert.equal(
    html("between $5 and $6, or US$7 and 8$"),
    "<p>between $5 and $6, or US$7 and 8$</p>\n",
  );
  assert.equal(
    html("$x$ and \\(y\\)"),
    '<p><span class="math">x</span> and <span class="math">y</span></p>\n',
  );
  assert.equal(html("$$\nx\n\ny"), '<div class="math">x\n\ny</div>\n');
  assert.equal(html("$$ alone"), "<p>$$ alone</p>\n");
});

test("a long text begins with whole blocks", () => {
  assert.equal(beginningOf("one\n\ntwo\nmore\n\nthree", 12), "one\n");
  assert.equal(beginningOf("x".repeat(50), 12), "x".repeat(12));
});

test("a file with columns has its cells, whatever stands between them", () => {
  assert.deepEqual(tableOf('\uFEFFa,b\r\n1,"x ""y"", z\nw"\n\n,"'), {
    rows: [
      ["a", "b"],
      ["1", 'x "y", z\nw'],
      ["", ""],
    ],
    isCut: false,
  });
  assert.deepEqual(tableOf("a;b,c;d\n1;2;3").rows, [
    ["a", "b,c", "d"],
    ["1", "2", "3"],
  ]);
  assert.deepEqual(tableOf("a\tb\n"), { rows: [["a", "b"]], isCut: false });
  assert.deepEqual(tableOf(""), { rows: [], isCut: false });
  const long = tableOf("a,b\n".repeat(600));
  assert.deepEqual([long.rows.length, long.isCut], [500, true]);
  assert.equal(tableOf(`${"a,".repeat(80)}\n1`).rows[0].length, 50);
});

test("a line that names the separator is no row", () => {
  const rows = [
    ["a", "b"],
    ["1", "2"],
  ];
  for (const text of [
    "sep=;\na;b\n1;2",
    "\uFEFFsep=;\r\na;b\r\n1;2",
    '"sep=;"\na;b\n1;2',
    "SEP=\t\na\tb\n1\t2",
    "a|b\n1|2",
    "sep=;;;\na;b\n1;2",
  ])
    assert.deepEqual(tableOf(text).rows, rows, text);
  for (const [isLittle, text] of /** @type {[boolean, string][]} */ ([
    [true, "名前,b\n1,2\n"],
    [false, "a,b\n"],
  ])) {
    const wide = new DataView(new ArrayBuffer(text.length * 2));
    [...text].forEach((sign, at) => wide.setUint16(at * 2, sign.charCodeAt(0), isLittle));
    assert.deepEqual(fileText(wide.buffer), { text, encoding: "UTF-16" });
  }
  assert.deepEqual(tableOf("name;price, EUR, net, old\nx;1\ny;2").rows[0], [
    "name",
    "price, EUR, net, old",
  ]);
});

test("the encoding of a file is found where nothing says it, and named", () => {
  /** @type {[string, string, string][]} bytes in hexadecimal, the text, the encoding */
  const files = [
    ["93fa95743b8be08a7a0a938c8b9e3b310a", "日付;金額\n東京;1\n", "Shift-JIS"],
    ["c8d5c6da2cbdf0b6ee0ab1b1bea92c310a", "日期,金额\n北京,1\n", "GBK"],
    ["a4e9b4c12caaf7c3420aa578a55f2c310a", "日期,金額\n台北,1\n", "Big5"],
    ["b3afc2a52cb1ddbed70abcadbfef2c310a", "날짜,금액\n서울,1\n", "EUC-KR"],
    ["4772f6df653b4d657965720a", "Größe;Meyer\n", "Windows-1252"],
    ["c4e0f2e03b620acceef1eae2e03b310a", "Дата;b\nМосква;1\n", "Windows-1251"],
    ["efbbbfc3a90a", "é\n", ""],
    ["c3a90ac3", "é\n", ""],
    ["fffee9000a00", "é\n", ""],
    ["feff00e9000a", "é\n", ""],
  ];
  for (const [hex, text, encoding] of files) {
    const bytes = Uint8Array.from(hex.match(/../g) || [], (pair) => Number.parseInt(pair, 16));
    assert.deepEqual(fileText(bytes.buffer), { text, encoding });
  }
});

test("what can be read is previewed, pages as their source, and nothing else", () => {
  const kinds = [
    ["a.csv", ""],
    ["a", "text/csv; charset=utf-8"],
    ["a.html", "text/html"],
    ["a.svg", "image/svg+xml"],
    ["a.json", "application/json"],
  ];
  assert.deepEqual(
    kinds.map(([name, mime]) => previewOf(name, mime)),
    ["table", "table", "text", "text", "text"],
  );
  assert.deepEqual(
    [
      previewOf("a.pdf", "application/pdf"),
      previewOf("a.pdf", ""),
      previewOf("a.exe", "application/octet-stream"),
      previewOf("", ""),
    ],
    ["pdf", "", "", ""],
  );
});
