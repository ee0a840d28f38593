// Where a workflow is written: asks before typed text is lost, and says so when the text could not be checked.
(() => {
  const PATIENCE = 3000;
  const AGAIN = 5000;
  const form = document.querySelector("form.editor");
  const text = form.elements.yaml;
  const panel = document.getElementById("faults");
  const fields = [...form.querySelectorAll("input:not([type=hidden]), textarea")];
  const isTyped = () => "unsaved" in form.dataset || fields.some((field) => field.value !== field.defaultValue);
  let isMeant = false; // to leave, saving or not
  let late = 0;
  let again = 0;
  let isAsking = false;

  // Without a server the browser would leave the text for a page of its own.
  form.addEventListener("submit", async (event) => {
    if (isMeant) return;
    event.preventDefault();
    if (isAsking) return; // a second click saves nothing twice
    isAsking = true;
    const { submitter } = event;
    const answer = await fetch("/healthz", { signal: AbortSignal.timeout(PATIENCE) }).catch(() => null);
    isAsking = false;
    isMeant = Boolean(answer);
    if (isMeant) form.requestSubmit(submitter);
    else window.runsight.toast("Not saved: the server cannot be reached. Your text is still here.", "error");
  });
  form.addEventListener("click", (event) => {
    if (event.target.closest("[data-discard]") && !event.ctrlKey && !event.metaKey && !event.shiftKey) isMeant = true;
    if (event.target.closest("[data-check]")) window.htmx.trigger(text, "check");
  });
  window.addEventListener("pageshow", () => { isMeant = false; });
  window.addEventListener("beforeunload", (event) => { if (!isMeant && isTyped()) event.preventDefault(); });

  // What the panel said was about an earlier text.
  function unchecked(why) {
    clearTimeout(late);
    const note = document.getElementById("unchecked").content.cloneNode(true);
    note.querySelector("[data-why]").textContent = why;
    panel.replaceChildren(note);
  }

  text.addEventListener("htmx:beforeRequest", () => {
    clearTimeout(late);
    clearTimeout(again);
    late = setTimeout(() => unchecked("The server does not answer."), PATIENCE);
  });
  // htmx listens from now on: what was typed before, or kept by the browser over a reload, is not what the panel speaks of.
  document.addEventListener("DOMContentLoaded", () => { if (text.value !== text.defaultValue) window.htmx.trigger(text, "check"); });
  text.addEventListener("htmx:afterRequest", () => clearTimeout(late));
  text.addEventListener("htmx:sendError", () => {
    unchecked("The server cannot be reached.");
    again = setTimeout(() => window.htmx.trigger(text, "check"), AGAIN);
  });
  text.addEventListener("htmx:responseError", ({ detail }) => unchecked(`The server answered ${detail.xhr.status}.`));
  panel.addEventListener("htmx:beforeSwap", (event) => {
    if (new URL(event.detail.xhr.responseURL).pathname === new URL(text.getAttribute("hx-post"), location).pathname) return;
    event.detail.shouldSwap = false; // the page of the log-in
    unchecked("You are logged out; log in again in another tab.");
  });
})();
