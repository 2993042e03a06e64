// Takes the set-up code out of the link's fragment, which no server and no log has seen.
"use strict";

const token = document.getElementById("token");
if (location.hash.length > 1) {
  token.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
}
if (token.value && token.getAttribute("aria-invalid") !== "true") {
  document.getElementById("token-field").hidden = true;
}
const wrong = document.querySelector("[aria-invalid=true]");
(wrong ?? document.getElementById(token.value ? "username" : "token")).focus();
