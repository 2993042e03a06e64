// Takes the set-up code out of the link's fragment, which no server and no log has seen.
"use strict";

// A fragment may lead to a field of the page, from the summary of what is wrong. No code is called like one.
const code = () => {
  const text = location.hash.slice(1);
  return document.getElementById(text) ? "" : text;
};

// Another link in the same tab differs in its fragment alone: nothing would be asked for. An address of its own, since loading the
// page again would send a form again that was refused.
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
  // What is wrong with no field is read first.
  if (wrong || !document.querySelector("[role=alert]")) (wrong ?? document.getElementById(token.value ? "username" : "token")).focus();
}
