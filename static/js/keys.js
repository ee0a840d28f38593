// Keyboard: / search, j and k move, Enter opens, x selects, c compares, ? helps.
// Pages mark: data-search (input), data-row with one data-row-link (or its first link), data-select
// (a checkbox in the row), data-compare (link or button).
(() => {
  const isVisible = (element) => element.getClientRects().length > 0;
  const isTyping = (element) =>
    element.isContentEditable || element.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, .ace_editor");

  const OPENS = "a[href], button";
  const target = (row) => row.querySelector("[data-row-link][href]") ?? (row.matches(OPENS) ? row : row.querySelector(OPENS));
  const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => isVisible(row) && target(row));

  function move(step) {
    const all = rows();
    if (!all.length) return false;
    const now = all.findIndex((row) => row.contains(document.activeElement));
    const next = now < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(now + step, 0), all.length - 1);
    const link = target(all[next]);
    link.focus({ focusVisible: true });
    link.scrollIntoView({ block: "nearest" });
    return true;
  }

  const actions = {
    "/": () => {
      const field = [...document.querySelectorAll("[data-search]")].find(isVisible);
      if (!field) location.assign("/workflows/#search");
      field?.focus();
      field?.select();
      return true;
    },
    j: () => move(1),
    k: () => move(-1),
    x: () => {
      const box = document.activeElement.closest("[data-row]")?.querySelector("[data-select]");
      box?.click();
      return Boolean(box);
    },
    c: () => {
      const compare = [...document.querySelectorAll("[data-compare]")].find((one) => isVisible(one) && !one.disabled);
      compare?.click();
      return Boolean(compare);
    },
    "?": () => {
      const help = document.getElementById("keyboard-help");
      help?.showModal();
      return Boolean(help);
    },
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape" && event.target.matches("[data-search]")) event.target.blur();
      return;
    }
    if (actions[event.key]?.()) event.preventDefault();
  });
  if (location.hash === "#search") actions["/"]();
})();
