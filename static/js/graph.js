// Updates one block of a server-drawn graph in place:
// runsight.updateNode(root, "analyze", {status: "completed", score: 0.86, dots: ["passed", "failed"]})
(() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const MOST = 8;
  const STEP = 9;
  const WIDTH = 220; // as in graphics.css and workflows_app/graph/layout.py

  function make(name, attributes) {
    const element = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  function dot(word, x, y) {
    const css = `mark mark--${word}`;
    if (word === "failed") return make("path", { d: `M${x} ${y - 4.5}l4.5 4.5l-4.5 4.5l-4.5-4.5z`, class: css });
    if (word === "error") return make("path", { d: `M${x} ${y - 4}l4 7.5h-8z`, class: css });
    return make("circle", { cx: x, cy: y, r: 3.25, class: css });
  }

  function drawDots(group, box, dots) {
    let shown = [...dots];
    const most = Math.min(MOST, 13 - box.parentElement.querySelector(".graph__sub").textContent.length);
    if (shown.length > most) shown = [...shown.filter((w) => w !== "passed"), ...shown.filter((w) => w === "passed")].slice(0, most);
    const right = Number(box.getAttribute("x")) + WIDTH - 52;
    const y = Number(box.getAttribute("y")) + 40;
    group.replaceChildren(...shown.map((word, i) => dot(word, right - STEP * shown.length + STEP * i + 4, y)));
  }

  function updateNode(root, id, { status, score, dots } = {}) {
    const node = [...root.querySelectorAll("[data-node-id]")].find((one) => one.dataset.nodeId === id);
    if (!node) return null;
    if (status) {
      node.dataset.status = status;
      const use = node.querySelector(".graph__status");
      use?.setAttribute("href", `${use.getAttribute("href").split("#")[0]}#${status}`);
      const isSkipped = (end) => root.querySelector(`[data-node-id="${CSS.escape(end)}"]`)?.dataset.status === "skipped";
      for (const way of root.querySelectorAll(`[data-ends~="${CSS.escape(id)}"]`)) way.classList.toggle("graph__edge--not", way.dataset.ends.split(" ").some(isSkipped));
    }
    const number = node.querySelector(".graph__score");
    if (score !== undefined && number) {
      // Only a perfect score reads 1.00, as on the server.
      number.textContent = score === null ? "" : (score < 1 ? Math.min(score, 0.99) : score).toFixed(2);
    }
    const box = node.querySelector(".graph__box");
    const group = node.querySelector(".graph__dots");
    if (dots && box && group) drawDots(group, box, dots);
    const title = node.querySelector("title");
    if (title) {
      const parts = [id, node.querySelector(".graph__sub")?.textContent, node.dataset.status];
      if (number?.textContent) parts.push(`score ${number.textContent}`);
      if (dots?.length) parts.push(`${dots.filter((w) => w === "passed").length} of ${dots.length} assertions passed`);
      title.textContent = parts.filter(Boolean).join(", ");
    }
    return node;
  }

  window.runsight = Object.assign(window.runsight ?? {}, { updateNode });
})();
