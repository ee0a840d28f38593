// A list of runs, live: progress moves in place; anything that comes, goes or ends brings the server's own rows.
// <div data-live-part="/its/own/address/" data-socket="/ws/dashboard/">
(() => {
  const box = document.querySelector("[data-live-part]");
  if (!box || !window.runsight?.live) return;
  const TERMINAL = new Set(["completed", "failed", "cancelled"]);
  const EVERY = 1000;
  let timer = 0;
  let last = 0;
  let isBusy = false;
  let isWanted = false;

  function refreshSoon() {
    if (timer) return;
    timer = setTimeout(refresh, Math.max(0, last + EVERY - Date.now()));
  }

  async function refresh() {
    timer = 0;
    if (isBusy || document.hidden || box.contains(document.activeElement?.closest?.("form"))) { isWanted = true; return; }
    isBusy = true;
    isWanted = false;
    last = Date.now();
    try {
      const answer = await fetch(box.dataset.livePart, { credentials: "same-origin", headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) swap(await answer.text());
    } catch { /* the banner says that the connection is lost; the next frame tries again */ }
    isBusy = false;
    if (isWanted) refreshSoon();
  }

  function swap(html) {
    const focused = box.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    box.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
    document.dispatchEvent(new Event("htmx:afterSwap"));
    if (focused) box.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }

  function take(run) {
    const row = box.querySelector(`[data-running="${CSS.escape(run.id)}"]`);
    if (!row || TERMINAL.has(run.status) || row.dataset.status !== run.status) { refreshSoon(); return; }
    const bar = row.querySelector("progress");
    bar.max = Math.max(bar.max, run.nodes_done);
    bar.value = run.nodes_done;
    row.querySelector("[data-count]").textContent = `${run.nodes_done} of ${bar.max} blocks`;
  }

  let isFirst = true;
  window.runsight.live(box.dataset.socket, {
    onMessage: (message) => {
      if (message.event === "run_updated") take(message.data);
      // The page was drawn a moment ago; a later snapshot comes after a lost connection.
      if (message.event === "snapshot") { if (!isFirst) refreshSoon(); isFirst = false; }
    },
    onState: (state) => window.runsight.connection(state !== "open"),
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isWanted) refreshSoon(); });
})();
