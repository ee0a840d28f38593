// Keeps <time data-relative> current, in the words of workflows_app/formats.py, and lets
// <span data-elapsed-since="ISO time"> count up where the page hears of the end.
(() => {
  const STEPS = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [30 * 86400, 86400, "d"]];
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

  function relative(moment, now) {
    const seconds = Math.trunc((now - moment) / 1000);
    if (Math.abs(seconds) < 5) return "just now";
    for (const [limit, size, unit] of STEPS) {
      if (Math.abs(seconds) >= limit) continue;
      const amount = `${Math.floor(Math.abs(seconds) / size)} ${unit}`;
      return seconds > 0 ? `${amount} ago` : `in ${amount}`;
    }
    return `${moment.getUTCDate()} ${MONTHS[moment.getUTCMonth()]} ${moment.getUTCFullYear()}`;
  }

  function duration(ms) {
    if (ms < 59950) return `${(Math.max(ms, 0) / 1000).toFixed(1)} s`;
    const seconds = Math.round(ms / 1000);
    for (const [unit, size, below, belowSize] of [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]]) {
      if (seconds < size) continue;
      const rest = Math.floor((seconds % size) / belowSize);
      return rest ? `${Math.floor(seconds / size)} ${unit} ${rest} ${below}` : `${Math.floor(seconds / size)} ${unit}`;
    }
    return `${seconds} s`;
  }

  function set(element, text) {
    if (element.textContent !== text) element.textContent = text;
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
      set(span, duration(now - Date.parse(span.dataset.elapsedSince)));
    }
  }

  function relativeElement(iso) {
    const time = document.createElement("time");
    const moment = new Date(iso);
    time.className = "nowrap";
    time.dateTime = moment.toISOString();
    time.title = `${moment.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    time.dataset.relative = "";
    time.textContent = relative(moment, new Date());
    return time;
  }

  refresh();
  tick();
  setInterval(() => { if (!document.hidden) refresh(); }, 10000);
  setInterval(() => { if (!document.hidden && window.runsight.live) tick(); }, 500);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { refresh(); tick(); } });
  document.addEventListener("htmx:afterSwap", () => { refresh(); tick(); });
  window.runsight = Object.assign(window.runsight ?? {}, { relative, duration, relativeElement });
})();
