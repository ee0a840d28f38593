"""Where a page's text is laid out badly: beside the page, out of its box, or cut off."""

from typing import Any

# Boxes that are meant to be scrolled sideways: what is in them keeps its lines.
SCROLLED = ".code, .graph-scroll, .tabs, .nav ul, .trend-pickers"
_FIND = """scrolled => {
  const found = new Map(), styles = new Map(), range = document.createRange();
  const style = (box) => styles.get(box) ?? (styles.set(box, getComputedStyle(box)), styles.get(box));
  const name = (box) => box.tagName.toLowerCase() + [...box.classList].map((one) => "." + one).join("");
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const unread = `svg, script, noscript, textarea, select, ${scrolled}`;
  if (document.documentElement.scrollWidth > innerWidth) found.set(`page: ${document.documentElement.scrollWidth - innerWidth} px too wide`);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (!text.data.trim() || text.parentElement.closest(unread)) continue;
    range.selectNodeContents(text);
    const lines = [...range.getClientRects()].filter((line) => line.width > 0);
    const left = Math.min(...lines.map((line) => line.left)), right = Math.max(...lines.map((line) => line.right));
    for (let box = text.parentElement; lines.length && box !== document.body; box = box.parentElement) {
      const { display, clipPath, position, textOverflow } = style(box);
      if (clipPath !== "none" || textOverflow === "ellipsis") break; // hidden on purpose, or cut so that one sees it
      if (display === "inline" || display === "contents") continue;
      const room = box.getBoundingClientRect();
      const out = Math.round(Math.max(room.left - left, right - room.right));
      if (out > 1) { found.set(`${name(text.parentElement)} sticks out of ${name(box)} by ${out} px: ${text.data.trim().slice(0, 40)}`); break; }
      if (position === "absolute" || position === "fixed") break; // not laid out in what it stands in
    }
  }
  for (const mark of document.querySelectorAll(".graph__status")) {
    const label = mark.parentElement.querySelector(".graph__label");
    if (label.getBoundingClientRect().right > mark.getBoundingClientRect().left) found.set(`${label.textContent} runs under its icon`);
  }
  for (const dots of document.querySelectorAll(".graph__dots:has(*)")) {
    const kind = dots.parentElement.querySelector(".graph__sub");
    if (kind.getBoundingClientRect().right > dots.getBoundingClientRect().left) found.set(`${kind.textContent} runs under its marks`);
  }
  return [...found.keys()];
}"""


def badly_laid_out(page: Any) -> list[str]:
    return page.evaluate(_FIND, SCROLLED)
