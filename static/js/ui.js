// Menus, dialogs, tabs, toasts and copy buttons, all by data attributes.
//   data-open-dialog="id" · data-close-dialog · data-menu (details) · data-dismiss
//   data-copy="#selector" · role=tablist with role=tab and aria-controls
// window.runsight.toast(text, "success" | "warning" | "error" | "info"), .connection(isLost)
(() => {
  function toast(text, tone = "info") {
    const box = document.getElementById("toast")?.content.firstElementChild.cloneNode(true);
    if (!box) return;
    for (const same of document.querySelectorAll(".toast")) if (same.querySelector("span").textContent === text) same.remove();
    box.classList.add(`toast--${tone}`);
    box.querySelector("span").textContent = text;
    document.getElementById("toasts").append(box);
    if (tone !== "error") setTimeout(() => box.remove(), 6000);
  }

  function connection(isLost) {
    for (const banner of document.querySelectorAll("[data-connection]")) banner.hidden = !isLost;
  }

  async function copy(button) {
    const source = document.querySelector(button.dataset.copy);
    if (!source) return;
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      toast("Copied.", "success");
    } catch {
      toast("The browser did not allow copying. Select the text and copy it by hand.", "warning");
    }
  }

  function select(tab) {
    for (const other of tab.closest('[role="tablist"]').querySelectorAll('[role="tab"]')) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      const panel = document.getElementById(other.getAttribute("aria-controls"));
      if (panel) panel.hidden = !chosen;
    }
  }

  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest?.(selector);
    for (const menu of document.querySelectorAll("[data-menu][open]")) {
      if (!menu.contains(event.target) || at("[data-open-dialog]")) menu.open = false;
    }
    const opener = at("[data-open-dialog]");
    if (opener) document.getElementById(opener.dataset.openDialog)?.showModal();
    if (at("[data-close-dialog]") || event.target.matches?.("dialog[open]")) event.target.closest("dialog")?.close();
    at("[data-dismiss]")?.parentElement.remove();
    if (at("[data-copy]")) copy(at("[data-copy]"));
    if (at('[role="tab"]')) select(at('[role="tab"]'));
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      const menu = document.querySelector("[data-menu][open]");
      if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
    }
    const tab = event.target.closest?.('[role="tab"]');
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!tab || !step) return;
    const tabs = [...tab.closest('[role="tablist"]').querySelectorAll('[role="tab"]')];
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    select(next);
    next.focus();
    event.preventDefault();
  });

  // At a phone's width the navigation scrolls; where one is should be in sight.
  const here = document.querySelector(".nav [aria-current]");
  const list = here?.closest("ul");
  const FADE = 32; // where its end fades out
  if (here) list.scrollLeft += here.getBoundingClientRect().right - list.getBoundingClientRect().right + FADE;

  // A graph higher than its box begins where the run does, not at its upper edge.
  for (const box of document.querySelectorAll(".graph-scroll")) {
    const first = box.querySelector("[data-node-id]")?.getBoundingClientRect();
    if (first) box.scrollTop += first.top - box.getBoundingClientRect().top - box.clientHeight / 2;
  }

  window.runsight = Object.assign(window.runsight ?? {}, { toast, connection });
})();
