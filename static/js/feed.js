// Lists of runs, live: <… data-feed="/ws/dashboard/" data-rows="/their/rows/">. As runs change, the rows are asked for:
// ?run=… for those that are shown, all=1 once one comes or changes its status.
//   data-only-shown  runs that are not in the list do not concern it
//   data-rest        when a run is over, the page itself is asked for, too, with ?part=1
(() => {
  const box = document.querySelector("[data-feed]");
  if (!box) return;
  const { live, refresher } = window.runsight;
  const TERMINAL = new Set(["completed", "failed", "cancelled"]);
  const ROWS_EVERY = 1000;
  const REST_EVERY = 5000;
  const SETTLES = 500; // the effects of a run's end, such as a regression, come a moment after it
  const changed = new Set();
  const asked = new Set(); // and not answered yet
  let isWhole = false;
  let wasWhole = false;
  let isFirst = true;

  const badgeOf = (id) => box.querySelector(`[data-run="${CSS.escape(id)}"] .badge`);

  const refreshRows = refresher(ROWS_EVERY, () => {
    const url = new URL(box.dataset.rows, location);
    for (const id of changed) asked.add(id);
    for (const id of asked) url.searchParams.append("run", id);
    wasWhole ||= isWhole;
    if (wasWhole) url.searchParams.set("all", "1");
    changed.clear();
    isWhole = false;
    return url;
  }, () => {
    asked.clear();
    wasWhole = false;
  });

  const refreshRest = refresher(REST_EVERY, () => {
    const url = new URL(location);
    url.searchParams.set("part", "1");
    return url;
  }, (page) => { if (page.querySelector("[data-settling]")) refreshRest(); });

  function take(run) {
    const badge = badgeOf(run.id);
    if (!badge && "onlyShown" in box.dataset) return;
    if (badge) changed.add(run.id);
    isWhole ||= badge?.dataset.word !== run.status;
    refreshRows();
    if ("rest" in box.dataset && (TERMINAL.has(run.status) || run.number === 1)) refreshRest(SETTLES);
  }

  // The page was drawn a moment ago; a later snapshot comes after a lost connection, or when much happens.
  function compare(runs) {
    const isNews = !isFirst || runs.some((run) => badgeOf(run.id) && badgeOf(run.id).dataset.word !== run.status);
    const open = [...box.querySelectorAll("[data-run]")].filter((row) => !TERMINAL.has(row.querySelector(".badge").dataset.word));
    for (const row of open) changed.add(row.dataset.run);
    isWhole ||= isNews;
    if (isNews || open.length) refreshRows();
    if (isNews && "rest" in box.dataset) refreshRest(SETTLES);
    isFirst = false;
  }

  live(box.dataset.feed, {
    onMessage: ({ event, data }) => {
      if (event === "run_updated") take(data);
      if (event === "snapshot") compare(data.runs);
    },
  });
})();
