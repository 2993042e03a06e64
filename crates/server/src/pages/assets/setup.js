// Takes the set-up code from the link's fragment, which no server and no log has seen.
"use strict";

// A fragment may also point to a field of the page, from the summary of problems. No code is named like a field.
const code = () => {
  const text = location.hash.slice(1);
  return document.getElementById(text) ? "" : text;
};

// Another link in the same tab differs only in its fragment: nothing would be requested. The address is a new one,
// since a reload would send a refused form again.
addEventListener("hashchange", () => {
  if (code()) location.replace(`${location.pathname}?again=${Date.now()}${location.hash}`);
});

const token = document.getElementById("token");
if (token && code()) {
  token.value = code();
  history.replaceState(null, "", location.pathname);
}
if (token) {
  if (token.value && token.getAttribute("aria-invalid") !== "true") {
    document.getElementById("token-field").hidden = true;
  }
  const wrong = document.querySelector("[aria-invalid=true]");
  // A problem that concerns no field is read first.
  if (wrong || !document.querySelector("[role=alert]")) (wrong ?? document.getElementById(token.value ? "username" : "token")).focus();
}
