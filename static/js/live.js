// A socket that heals itself: runsight.live(path, {after, onMessage}) returns {close}. The banner says when it is lost.
//   after      number of the last event already shown; the server sends everything later, each once
//   onMessage  called with each event, in order, never twice
(() => {
  const FIRST_PAUSE = 400;
  const LONGEST_PAUSE = 15000;
  const SILENCE = 50000; // the server sends something every 20 s
  const PATIENCE = 1200; // a connection back sooner than this was hardly lost
  const SETTLED = 300; // a refusal opens, too, and closes at once
  const HEALTHY = 5000; // open for so long, it may be tried again soon when it is lost
  const LOGGED_OUT = 4401;
  const FINAL = new Set([4400, LOGGED_OUT, 4403, 4404]);

  function explain(code) {
    const link = document.createElement("a");
    link.href = `/login/?next=${encodeURIComponent(location.pathname + location.search)}`;
    link.textContent = "log in again";
    const words = code === LOGGED_OUT ? ["You are logged out; ", link, " to see what happens."] : ["What you see is no longer kept up to date."];
    document.querySelector("[data-connection] > span").replaceChildren(...words);
  }

  function live(path, { after = null, onMessage }) {
    const { connection } = window.runsight;
    const listeners = new AbortController();
    let last = after;
    let socket = null;
    let failures = 0;
    let retry = 0;
    let silence = 0;
    let lost = 0;

    function address() {
      const url = new URL(path, location.href);
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      if (last !== null) url.searchParams.set("after", last);
      return url;
    }

    function connect() {
      clearTimeout(retry);
      if (listeners.signal.aborted || socket) return;
      const mine = socket = new WebSocket(address());
      const whenStillOpen = (wait, action) => setTimeout(() => { if (mine === socket && mine.readyState === WebSocket.OPEN) action(); }, wait);
      waitForMore();
      mine.addEventListener("open", () => {
        whenStillOpen(SETTLED, settle);
        whenStillOpen(HEALTHY, () => { failures = 0; });
      });
      mine.addEventListener("message", ({ data }) => {
        if (mine !== socket) return;
        failures = 0;
        settle();
        take(JSON.parse(data));
      });
      mine.addEventListener("close", ({ code }) => { if (mine === socket) end(code); });
    }

    function waitForMore() {
      clearTimeout(silence);
      silence = setTimeout(drop, SILENCE);
    }

    function settle() {
      clearTimeout(lost);
      lost = 0;
      waitForMore();
      connection(false);
    }

    function take(message) {
      if (message.event === "ping" || (last !== null && message.seq <= last)) return;
      if (last !== null) last = message.seq ?? last;
      onMessage(message);
    }

    function end(code) {
      clearTimeout(silence);
      socket = null;
      if (FINAL.has(code)) {
        close();
        connection(true);
        explain(code);
        return;
      }
      lost ||= setTimeout(() => connection(true), failures ? 0 : PATIENCE);
      retry = setTimeout(connect, Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** failures) * (0.5 + Math.random()));
      failures += 1;
    }

    function drop() {
      const old = socket;
      if (!old) return;
      end(1006);
      old.close();
    }

    function hurry() {
      if (socket || document.hidden) return;
      failures = 0;
      connect();
    }

    function close() {
      listeners.abort();
      for (const timer of [retry, silence, lost]) clearTimeout(timer);
      const old = socket;
      socket = null;
      old?.close();
    }

    window.addEventListener("online", hurry, listeners);
    window.addEventListener("offline", drop, listeners);
    document.addEventListener("visibilitychange", hurry, listeners);
    connect();
    return { close };
  }

  window.runsight = Object.assign(window.runsight ?? {}, { live });
})();
