// Runs in <head> before the first paint, so the chosen theme never flashes. The admin keeps its choice
// under the same key with the same words (auto, light, dark), so both follow one switch.
(() => {
  const stored = () => {
    try { return localStorage.getItem("theme") || "auto"; } catch { return "auto"; }
  };
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    for (const button of document.querySelectorAll("[data-theme-set]")) {
      button.setAttribute("aria-pressed", String(button.dataset.themeSet === theme));
    }
  };
  apply(stored());
  document.addEventListener("DOMContentLoaded", () => apply(stored()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-theme-set]");
    if (!button) return;
    try { localStorage.setItem("theme", button.dataset.themeSet); } catch { /* private mode: this page only */ }
    apply(button.dataset.themeSet);
  });
  addEventListener("storage", (event) => { if (event.key === "theme") apply(stored()); });
})();
