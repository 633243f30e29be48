// Sets the chosen theme before the first paint. It is no module, because modules run after that.
"use strict";
try {
  const chosen = localStorage.getItem("openfleet.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage the theme is that of the system.
}
