// Keeps <time data-relative> current, in the words of workflows_app/display/formats.py, and lets
// <span data-elapsed-since="ISO time"> count up where the page hears of the end.
(() => {
  const STEPS = [[60, 1, " s"], [3600, 60, " min"], [86400, 3600, "h"], [30 * 86400, 86400, "d"]];
  const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, " min"], [60, " min", 1, " s"], [1, " s", 1, ""]];

  function relative(moment, now) {
    const seconds = Math.trunc((now - moment) / 1000);
    if (Math.abs(seconds) < 5) return "just now";
    for (const [limit, size, unit] of STEPS) {
      if (Math.abs(seconds) >= limit) continue;
      const amount = `${Math.floor(Math.abs(seconds) / size)}${unit}`;
      return seconds > 0 ? `${amount} ago` : `in ${amount}`;
    }
    return ""; // the date that the server wrote stays true
  }

  // A clock, in whole seconds; how long something took in the end is for the server to say.
  function elapsed(ms) {
    const seconds = Math.max(Math.trunc(ms / 1000), 0);
    const [size, unit, below, belowUnit] = UNITS.find(([limit]) => seconds >= limit) ?? UNITS.at(-1);
    const rest = Math.trunc((seconds % size) / below);
    return `${Math.trunc(seconds / size)}${unit}${rest ? ` ${rest}${belowUnit}` : ""}`;
  }

  function set(element, text) {
    if (text && element.textContent !== text) element.textContent = text;
  }

  function refresh() {
    const now = new Date();
    for (const time of document.querySelectorAll("time[data-relative]")) {
      const moment = new Date(time.dateTime);
      if (!Number.isNaN(moment.getTime())) set(time, relative(moment, now));
    }
  }

  function tick() {
    const now = Date.now();
    for (const span of document.querySelectorAll("[data-elapsed-since]")) {
      set(span, elapsed(now - Date.parse(span.dataset.elapsedSince)));
    }
  }

  refresh();
  tick();
  setInterval(() => { if (!document.hidden) refresh(); }, 10000);
  setInterval(() => { if (!document.hidden && window.runsight.live) tick(); }, 500);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { refresh(); tick(); } });
  document.addEventListener("runsight:swap", () => { refresh(); tick(); });
})();
