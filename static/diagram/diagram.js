/**
 * Draws the one diagram that the page around its frame sends, and answers with its size or with
 * what is wrong. The page has no origin: it can neither read the chat nor load anything, whatever a
 * diagram has in it. A script of the old kind, because modules are not loaded without an origin.
 */

(() => {
  const MAX_CHARS = 20_000;
  const MAX_EDGES = 500;
  // The origin of the address, which the document itself does not have.
  const { origin } = new URL(document.URL);
  const main = /** @type {HTMLElement} */ (document.getElementById("diagram"));

  /** @param {object} answer */
  const answer = (answer) => parent.postMessage(answer, origin);

  /** @param {{code: string, theme: "light"|"dark"}} wanted */
  async function draw({ code, theme }) {
    document.documentElement.dataset.theme = theme;
    const { mermaid } = /** @type {any} */ (globalThis);
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      theme: theme === "dark" ? "dark" : "default",
      darkMode: theme === "dark",
      maxTextSize: MAX_CHARS,
      maxEdges: MAX_EDGES,
      suppressErrorRendering: true,
      fontFamily: "system-ui, sans-serif",
      flowchart: { useMaxWidth: false },
      sequence: { useMaxWidth: false },
      gantt: { useMaxWidth: false },
      er: { useMaxWidth: false },
      state: { useMaxWidth: false },
      class: { useMaxWidth: false },
      journey: { useMaxWidth: false },
      pie: { useMaxWidth: false },
      mindmap: { useMaxWidth: false },
    });
    try {
      const { svg } = await mermaid.render("drawn", code);
      main.innerHTML = svg;
      const { width, height } = /** @type {SVGElement} */ (
        main.firstElementChild
      ).getBoundingClientRect();
      // With the space around it.
      answer({ width: Math.ceil(width) + 24, height: Math.ceil(height) + 24 });
    } catch (error) {
      answer({ problem: error instanceof Error ? error.message : String(error) });
    }
  }

  addEventListener("message", ({ source, origin: from, data }) => {
    if (source === parent && from === origin) draw(data);
  });
  answer({ ready: true });
})();
