import assert from "node:assert/strict";
import { test } from "node:test";
import { beginningOf, blocksOf } from "../../static/chat/markdown/parser.js";
import { previewOf, tableOf } from "../../static/chat/parts/preview.js";
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
  blocks.map(({ html }) => html.replace(/<[^>]*>/g, "")).join("\n").replaceAll("&amp;", "&").replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">");

test("a growing text shows no raw marks, and what it shows stays", () => {
  const inCode = '"**no mark**"';
  const whole = textOf(blocksOf(ANSWER)).replace(/\s+/g, "");
  for (let length = 1; length <= ANSWER.length; length += 1) {
    const text = ANSWER.slice(0, length);
    const { finished, last } = grown(text, true);
    const shown = textOf([...finished, ...last]);
    const plain = shown.replaceAll(inCode.slice(0, 1 + 13), "").replace(/return "[^\n]*/, "");
    assert.doesNotMatch(plain, /\*\*|~~|`|\]\(|^\s*#|^\s*[-+] |\||\$\$|\\\(|\[[ x]?\]|</m, `${JSON.stringify(text.slice(-30))}: ${shown}`);
    assert.ok(whole.startsWith(shown.replace(/\s+/g, "")), `${JSON.stringify(text.slice(-30))}: ${JSON.stringify(shown.slice(-60))}`);
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
  drawn.push(...[grown(ANSWER.slice(from), false, env)].flatMap(({ finished, last }) => [...finished, ...last]).map(({ html }) => html));
  assert.deepEqual(drawn, whole);
});

test("amounts are no formulas, and a formula without its end goes to the end of the text", () => {
  const html = (text) => blocksOf(text).map((block) => block.html).join("");
  assert.equal(html("between $5 and $6, or US$7 and 8$"), "<p>between $5 and $6, or US$7 and 8$</p>\n");
  assert.equal(html("$x$ and \\(y\\)"), '<p><span class="math">x</span> and <span class="math">y</span></p>\n');
  assert.equal(html("$$\nx\n\ny"), '<div class="math">x\n\ny</div>\n');
  assert.equal(html("$$ alone"), "<p>$$ alone</p>\n");
});

test("a long text begins with whole blocks", () => {
  assert.equal(beginningOf("one\n\ntwo\nmore\n\nthree", 12), "one\n");
  assert.equal(beginningOf("x".repeat(50), 12), "x".repeat(12));
});

test("a file with columns has its cells, whatever stands between them", () => {
  assert.deepEqual(tableOf('\uFEFFa,b\r\n1,"x ""y"", z\nw"\n\n,"'), { rows: [["a", "b"], ["1", 'x "y", z\nw'], ["", ""]], isCut: false });
  assert.deepEqual(tableOf("a;b,c;d\n1;2;3").rows, [["a", "b,c", "d"], ["1", "2", "3"]]);
  assert.deepEqual(tableOf("a\tb\n"), { rows: [["a", "b"]], isCut: false });
  assert.deepEqual(tableOf(""), { rows: [], isCut: false });
  const long = tableOf("a,b\n".repeat(600));
  assert.deepEqual([long.rows.length, long.isCut], [500, true]);
  assert.equal(tableOf(`${"a,".repeat(80)}\n1`).rows[0].length, 50);
});

test("what can be read is previewed, pages as their source, and nothing else", () => {
  const kinds = [["a.csv", ""], ["a", "text/csv; charset=utf-8"], ["a.html", "text/html"], ["a.svg", "image/svg+xml"], ["a.json", "application/json"]];
  assert.deepEqual(kinds.map(([name, mime]) => previewOf(name, mime)), ["table", "table", "text", "text", "text"]);
  assert.deepEqual([previewOf("a.pdf", "application/pdf"), previewOf("a.exe", "application/octet-stream"), previewOf("", "")], ["", "", ""]);
});
