// Swagger UI is dark by a class of its own; here it follows the theme of every other page.
(() => {
  const page = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const paint = () => {
    const { theme } = page.dataset;
    page.classList.toggle("dark-mode", theme === "dark" || (theme !== "light" && system.matches));
  };
  new MutationObserver(paint).observe(page, { attributeFilter: ["data-theme"] });
  system.addEventListener("change", paint);
  paint();
})();
