// Takes the set-up code out of the link's fragment, which no server and no log has seen.
"use strict";

// Another link in the same tab differs in its fragment alone: nothing would be asked for.
addEventListener("hashchange", () => location.reload());

const token = document.getElementById("token");
if (token && location.hash.length > 1) {
  token.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
}
if (token) {
  if (token.value && token.getAttribute("aria-invalid") !== "true") {
    document.getElementById("token-field").hidden = true;
  }
  const wrong = document.querySelector("[aria-invalid=true]");
  (wrong ?? document.getElementById(token.value ? "username" : "token")).focus();
}
