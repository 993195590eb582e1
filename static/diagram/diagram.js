/**
 * Draws one diagram sent by the embedding page, and answers with its size or an error. This page
 * has no origin: whatever the diagram contains, it can neither read the chat nor load anything. A
 * classic script, because modules cannot load without an origin.
 */

(() => {
  const MAX_CHARS = 20_000;
  const MAX_EDGES = 500;
  // The origin of the address; the document itself has none.
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
      // Includes the margin.
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
