"""Message texts: what Markdown can express, and what must never become markup.

Both renderers, the server's and the browser's, are tested with them.
"""

from __future__ import annotations

import random

CONTENT = "/api/content/550e8400-e29b-41d4-a716-446655440000"

XSS_CORPUS = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil.test></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><animate onbegin=alert(1)>",
    "<svg><script xlink:href=data:,alert(1)></script></svg>",
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<style>@import url(//evil.test)</style>",
    '<a href="javascript:alert(1)">x</a>',
    "<base href=//evil.test>",
    "<form action=//evil.test><button>x</button></form>",
    "<meta http-equiv=refresh content='0;url=//evil.test'>",
    "<object data=//evil.test></object><embed src=//evil.test>",
    "<details open ontoggle=alert(1)>",
    "<template><script>alert(1)</script></template>",
    "<!--><img src=x onerror=alert(1)>-->",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java&NewLine;script:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](file:///etc/passwd)",
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    '[x](https://ok.test "\\" onmouseover=alert(1) \\"")',
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
    '![x"onerror="alert(1)](https://evil.test/p.png)',
    '![x](https://evil.test/p.png"onerror="alert(1))',
    "![x](//evil.test/p.png)",
    f"![x]({CONTENT}/../../../logout)",
    "![a ![b](https://evil.test/b.png) c](https://evil.test/a.png)",
    "[![x](https://evil.test/p.png)](javascript:alert(1))",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "```python onload=alert(1)\nprint('</code><script>alert(1)</script>')\n```",
    "    <script>alert(1)</script>",
    "`<script>alert(1)</script>`",
    "|<script>alert(1)</script>|b|\n|-|-|\n|<img src=x onerror=alert(1)>|d|",
    "# <script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;img src=x onerror=alert(1)&#62;",
    "> - 1. <iframe src=//evil.test>",
    "https://evil.test/<script>alert(1)</script>",
    "https://evil.test/'onmouseover='alert(1)",
    "**<b onclick=alert(1)>x</b>**",
    "\x00<script>alert(1)</script>\ufeff",
    "<scr\x00ipt>alert(1)</scr\x00ipt>",
    '<span class="remote-image" data-src="javascript:alert(1)">x</span>',
]


SAMPLES = [
    "",
    " \n\t\n",
    "one\ntwo  \nthree\\\nfour",
    "# h1\n## h2 ##\n### h3\n####### no\n#no\nSetext\n===\nSecond\n---",
    "***\n- - -\n___\n--",
    "*a* **b** ***c*** _d_ __e__ a_b_c 2*3*4 **a*b** *a**b* ~~x~~ ~y~ ~~~z~~~",
    "**bold *nested* text** and *it **was** so*",
    "`a` ``b ` c`` ` d ` `e",
    "\\*no\\* \\# \\[x\\] \\` &amp; &copy; &#35; &#x22; &nosuch; & <",
    "[a](https://h.test 'title') [b](</p q>) [c](/path?x=1&y=2#z) [d]() [e](mailto:a@h.test)",
    '[a][one] [one][] [one] [nosuch]\n\n[one]: https://h.test/1 "t"\n[One]: https://h.test/2',
    "<https://h.test/a?b=c> <mailto:a@h.test> <a@h.test> <nosuch:x> <b>",
    "https://h.test/a_(b) http://h.test. www.h.test a@h.test ftp://h.test //h.test main.py",
    "[https://h.test/x](https://h.test/y) [a [b](https://h.test/c) d](https://h.test/e)",
    "https://h.test/ä?ö=ü https://xn--bcher-kva.test https://bücher.test [x](https://bücher.test/ä%20b)",
    f"![a *b*]({CONTENT}) ![c](https://h.test/d.png 'e') ![f](g.png) [![h]({CONTENT})](https://h.test)",
    "- a\n- b\n  - c\n    - d\n\n  more\n- e\n\n\n* f\n+ g",
    "1. a\n2. b\n\n3. c\n7) d\n0. e\n1234567890. no",
    "- [ ] a\n- [x] **b**\n- [X]\tc\n- [] d\n- [ ]e\n1. [ ] f\n   - [x] g\n\n- [x]\n\n  para",
    "> a\n> > b\nlazy\n>\n> - c\n>   d\n\n> ```\n> e\n> ```",
    "```\na\n\n  b\n```\n~~~py title\nc\n~~~\n````md\n```\nx\n```\n````",
    "    indented\n\n    more\n```c++\nopen",
    "- a\n\n      code\n- ```js\n  let a = 1;\n  ```\n-\n- b",
    "|a|b|\n|-|:-:|\n|1|2|\n|3|\n|4|5|6|\n| `x|y` | a\\|b |\n\nafter",
    "a | b\n-|-:\n1 | *2*\n> quote",
    "| a |\n|---|\n\n|a|b\n|---|\nno table",
    "para\n| a | b |\n|---|---|\n| 1 | 2 |\nstill a row",
    "$a$ $ b$ $c $ $5 and $6 US$7 $8x$9 \\$x\\$ $a\\$b$ $$c$$ x$y$ $z$x $_a$ `$d$` $`e`$",
    "\\(a\\) \\( \\) \\[b\\] \\(c \\[d\\] **\\(e*f\\)**",
    "$$\na\n\nb\n$$\nafter\n$$ c $$\n$$d\ne$$\n$$f\n\ng$$\n$$h$$ i\n\\[\nj\n\\]\n\\[k\\] l",
    "a\n\\[b\n$$\nc\\]\nd\n\ne\n\\[f\n$$\ng\n\nh",
    "- $$\n  a\n  $$\n- \\[b\\]\n> $$\n> c\n> $$\nd\n$$\nopen",
    "مرحبا **بالعالم** 👋🏽 日本語*強調*です e\u0301 \u202eevil\u202c \u00a0 \ufeff",
    "a\r\nb\rc\r\n\r\n- d\r\n\td",
    "\u0000 \ufffd \u0001 \u200b",
    "<div>\n**a**\n</div>\n<!-- b -->\n<br/>\n<?php ?>\n<![CDATA[x]]>",
    ">" * 30 + "deep\n" + "- " * 30 + "deep",
    "*" * 60 + "a" + "*" * 60,
    "@alice, ask @bob.b. (@c) a@h.test x@y @_z- **@d** `@e` [@f](https://h.test/@g) ![@h](i) @@j",
    "\u05e9\u05dc\u05d5\u05dd @alice. \u0645\u0631\u062d\u0628\u0627 @\u05d0\u05d1 ok",
    "- [ ] @bob\n\n| @a |\n|-|\n| @b |",
    "[" * 40 + "a" + "]" * 40 + "(x)",
    "http://a " * 310,
    "\"quotes\" -- (c) ... 'single'",
    "term\n: no list\n\n[^1]: no note\n\n- [link](x)\n\n  [ref]: /y\n\n[ref]",
]

_FRAGMENTS = [
    *("a", "b c", "**", "*", "_", "~~", "`", "```", "~~~", "```py", "$", "$$", "\\(", "\\)", "\\["),
    *(
        "\\]",
        "[",
        "]",
        "](",
        "(",
        ")",
        "[x](https://h.test)",
        "![y](https://h.test/z.png)",
        "<",
        ">",
    ),
    *("https://h.test/p", "- ", "1. ", "# ", "> ", "|", "|a|b|", "|-|-|", "---", "===", "    "),
    *(
        "\\",
        "&amp;",
        "&",
        "[ ] ",
        "[x] ",
        "[r]",
        "[r]: /u",
        "é",
        "@a.b ",
        "👋",
        "!",
        "<b>",
        "\t",
        ":",
        "+ ",
    ),
]


def mixed_texts(count: int, *, seed: int = 1) -> list[str]:
    """Return texts of fragments in random order, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 not a secret
    joins = ["", "", " ", "\n", "\n", "\n\n", "\n  "]
    return [
        "".join(
            chance.choice(_FRAGMENTS) + chance.choice(joins) for _ in range(chance.randint(2, 14))
        )
        for _ in range(count)
    ]
