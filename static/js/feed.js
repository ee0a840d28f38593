// Runs, live: progress moves in place; anything that comes, goes or ends brings the server's own rows.
// <div data-live-part="/its/own/address/" data-socket="/ws/dashboard/">
// When a run is over, the page is asked for once more, for everything in it marked <… id="x" data-fresh>.
(() => {
  const box = document.querySelector("[data-live-part]");
  if (!box || !window.runsight?.live) return;
  const { live, asker, swap } = window.runsight;
  const TERMINAL = new Set(["completed", "failed", "cancelled"]);
  const RUNS_EVERY = 1000;
  const REST_EVERY = 5000;
  const SETTLES = 500; // what the end of a run brings about is a moment later than its end

  const refreshRuns = asker(RUNS_EVERY, () => box.dataset.livePart, (page) => swap(box, page.body));
  const refreshRest = asker(REST_EVERY, ownAddress, (page) => {
    for (const part of document.querySelectorAll("[data-fresh]")) {
      const fresh = page.getElementById(part.id);
      if (fresh) swap(part, fresh);
    }
    if (page.querySelector("[data-settling]")) refreshRest();
  });

  function ownAddress() {
    const address = new URL(location);
    address.searchParams.set("part", "1");
    return address;
  }

  function take(run) {
    const isOver = TERMINAL.has(run.status);
    if (isOver || run.number === 1) refreshRest(SETTLES);
    const row = box.querySelector(`[data-running="${CSS.escape(run.id)}"]`);
    if (!row || isOver || row.dataset.status !== run.status) { refreshRuns(); return; }
    const bar = row.querySelector("progress");
    bar.max = Math.max(bar.max, run.nodes_done);
    bar.value = run.nodes_done;
    row.querySelector("[data-count]").textContent = `${run.nodes_done} of ${bar.max} blocks`;
  }

  const isNews = (run) => {
    const shown = box.querySelector(`[data-run="${CSS.escape(run.id)}"] .badge`);
    return shown && shown.dataset.word !== run.status;
  };

  let isFirst = true;
  live(box.dataset.socket, {
    onMessage: (message) => {
      if (message.event === "run_updated") take(message.data);
      // The page was drawn a moment ago; a later snapshot comes after a lost connection, or when much happens.
      if (message.event === "snapshot" && (!isFirst || message.data.runs.some(isNews))) { refreshRuns(); refreshRest(SETTLES); }
      isFirst = false;
    },
  });
})();
