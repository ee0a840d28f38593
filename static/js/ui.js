// Menus, dialogs, tabs, toasts and copy buttons, all by data attributes.
//   data-open-dialog="id" · data-close-dialog · data-menu (details) · data-dismiss
//   data-copy="#selector" · role=tablist with role=tab and aria-controls
//   data-asks="name": what a link to this page changes of its address
// window.runsight.toast(text, "success" | "warning" | "error" | "info"), .connection(isLost)
(() => {
  function toast(text, tone = "info") {
    const box = document.getElementById("toast")?.content.firstElementChild.cloneNode(true);
    if (!box) return;
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

  // What was asked for by a click does not come: say so, once, however often it is clicked.
  document.addEventListener("htmx:sendError", () => {
    const words = "The server cannot be reached. Try again in a moment.";
    if (![...document.querySelectorAll(".toast > span")].some((one) => one.textContent === words)) toast(words, "warning");
  });

  // A link that brings a part of its page asks for it with its own query.
  document.addEventListener("htmx:configRequest", ({ target, detail }) => {
    if (target.matches("a")) detail.path += target.search;
  });

  // A part of the page changed its address: links that ask for something else keep what it says now.
  document.addEventListener("htmx:pushedIntoHistory", () => {
    for (const link of document.querySelectorAll("a[data-asks]")) {
      const name = link.dataset.asks;
      const query = new URLSearchParams(location.search);
      query.set(name, new URLSearchParams(link.search).get(name));
      link.search = query;
    }
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
