// The login page. It exchanges the one-time code of the fragment for the cookie, or waits until another tab has
// done so, and then leaves for the page with what else the fragment said.
const say = document.getElementById("say");
const others = new BroadcastChannel("rig-bridge-login");

const parameters = new URLSearchParams(location.hash.slice(1));
const code = parameters.get("code");
parameters.delete("code");
const fragment = parameters.toString() === "" ? "" : "#" + parameters;

// leave goes to another path than this one: a change of the fragment alone would load nothing. It gives up when the
// cookie is there and does not open the page.
function leave() {
  const last = Number(sessionStorage.getItem("left") ?? 0);
  sessionStorage.setItem("left", Date.now());
  if (Date.now() - last < 2000) say.textContent = "The browser does not send its login. Allow cookies for this address.";
  else location.replace((location.pathname === "/" ? "/ui" : "/") + fragment);
}

async function look() {
  const answer = await fetch("/api/session", { cache: "no-store" }).catch(() => null);
  if (answer?.ok) leave();
}

async function exchange() {
  // Out of the address and the history before anything else.
  history.replaceState(null, "", location.pathname + fragment);
  say.textContent = "Logging in …";
  const answer = await fetch("/api/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  }).catch(() => null);
  if (answer?.ok) {
    others.postMessage("logged in");
    return leave();
  }
  const said = await answer?.json().catch(() => null);
  say.textContent = said?.error ?? "Rig Bridge does not answer. Start it with rig-bridge serve, then ask for a new link.";
}

if (code !== null) await exchange();
await look(); // an old link in a browser that is logged in is good enough; so is one followed from another site
others.onmessage = look;
addEventListener("focus", look);
addEventListener("hashchange", () => location.reload());
