// A socket that heals itself: runsight.live(path, {after, onMessage, onState}) returns {close}.
//   after      number of the last event already shown; the server sends everything later, each once
//   onMessage  called with each event, in order, never twice
//   onState    "open", "lost", or "refused": nothing more will come; the banner tells by itself
(() => {
  const FIRST_PAUSE = 400;
  const LONGEST_PAUSE = 15000;
  const SILENCE = 50000; // the server says something every 20 s
  const PATIENCE = 1200; // a connection back sooner than this was hardly lost
  const SETTLED = 300; // a refusal opens, too, and closes at once
  const HEALTHY = 5000; // open for so long, it may be tried again soon when it is lost
  const FINAL = new Set([4400, 4401, 4403, 4404]);

  function tell(state, code) {
    window.runsight.connection(state !== "open");
    if (state !== "refused") return;
    const words = document.querySelector("[data-connection] > span");
    const link = document.createElement("a");
    link.href = `/login/?next=${encodeURIComponent(location.pathname + location.search)}`;
    link.textContent = "log in again";
    words.replaceChildren(...(code === 4401 ? ["You are logged out; ", link, " to see what happens."] : ["What you see is no longer kept up to date."]));
  }

  function live(path, { after = null, onMessage = () => {}, onState = () => {} } = {}) {
    let last = after;
    const told = (state, code) => { tell(state, code); onState(state); };
    let socket = null;
    let failures = 0;
    let isClosed = false;
    let retry = 0;
    let watch = 0;
    let lost = 0;
    let isOpen = false;

    function address() {
      const url = new URL(path, location.href);
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      if (last !== null) url.searchParams.set("after", last);
      return url;
    }

    function heard() {
      clearTimeout(watch);
      watch = setTimeout(() => drop(), SILENCE);
    }

    function connect() {
      clearTimeout(retry);
      if (isClosed || (socket && socket.readyState <= WebSocket.OPEN)) return;
      const mine = socket = new WebSocket(address());
      heard();
      const isStillOpen = () => mine === socket && mine.readyState === WebSocket.OPEN;
      mine.addEventListener("open", () => {
        setTimeout(() => { if (isStillOpen()) settled(); }, SETTLED);
        setTimeout(() => { if (isStillOpen()) failures = 0; }, HEALTHY);
      });
      mine.addEventListener("message", (event) => {
        if (mine !== socket) return;
        failures = 0;
        settled();
        take(JSON.parse(event.data));
      });
      mine.addEventListener("close", (event) => { if (mine === socket) ended(event.code); });
    }

    function settled() {
      clearTimeout(lost);
      lost = 0;
      heard();
      if (!isOpen) told("open");
      isOpen = true;
    }

    function take(message) {
      if (message.event === "ping") return;
      if (typeof message.seq === "number" && last !== null) {
        if (message.seq <= last) return;
        last = message.seq;
      }
      onMessage(message);
    }

    function ended(code) {
      clearTimeout(watch);
      socket = null;
      if (isClosed) return;
      if (FINAL.has(code)) {
        isClosed = true;
        told("refused", code);
        return;
      }
      isOpen = false;
      lost ||= setTimeout(() => told("lost"), failures ? 0 : PATIENCE);
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** failures);
      failures += 1;
      retry = setTimeout(connect, pause * (0.5 + Math.random()));
    }

    function drop() {
      const old = socket;
      if (!old) return;
      ended(1006);
      old.close();
    }

    function hurry() {
      if (isClosed || socket || document.hidden) return;
      failures = 0;
      connect();
    }

    function close() {
      isClosed = true;
      clearTimeout(retry);
      clearTimeout(watch);
      clearTimeout(lost);
      window.removeEventListener("online", hurry);
      window.removeEventListener("offline", drop);
      document.removeEventListener("visibilitychange", hurry);
      socket?.close();
      socket = null;
    }

    window.addEventListener("online", hurry);
    window.addEventListener("offline", drop);
    document.addEventListener("visibilitychange", hurry);
    connect();
    return { close };
  }

  window.runsight = Object.assign(window.runsight ?? {}, { live });
})();
