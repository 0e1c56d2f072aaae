// The line at the top: how much there is, how it stands with the daemon, who asked last.
import type { VNode } from "preact";
import type { Tunnel } from "../model/kinds.ts";
import { link as to } from "../model/route.ts";
import { count, tunnelLabel } from "../model/state.ts";
import { oneLine } from "../model/printable.ts";
import { helping } from "../page.ts";
import * as world from "../world.ts";
import { Ago, clock, Dot, moment } from "./parts.tsx";

export function Header(): VNode {
  const unread = world.unread.value.length;
  return (
    <header class="top">
      <a class="brand" href={to("overview")}>
        <img src="/assets/icon.svg" alt="" width="22" height="22" />
        Rig Bridge
      </a>
      <ul class="counters" aria-label="Counters">
        <li>{count(world.projects.value.length, "project")}</li>
        <li><a href={to("overview")}>{world.running.value.length} running</a></li>
        <li><a class={unread > 0 ? "calls" : ""} href={to("inbox")}>{unread} unread</a></li>
      </ul>
      <LastClient />
      <Tunnels />
      <Connection />
      <button type="button" class="quiet" aria-haspopup="dialog" onClick={() => (helping.value = true)}>Help</button>
    </header>
  );
}

function LastClient(): VNode | null {
  const client = [...world.clients.value].sort((a, b) => (b.lastTime ?? 0) - (a.lastTime ?? 0))[0];
  if (!client) return null;
  return (
    <span class="last-client">
      <bdi>{oneLine(client.name || client.userAgent || "a client", 30)}</bdi> <Ago at={client.lastTime ?? 0} />
    </span>
  );
}

function Tunnels(): VNode {
  return (
    <>
      {world.tunnels.value.map((t) => {
        const label = tunnelLabel(t);
        return (
          <span key={t.metadata.name} class="tunnel" title={tunnelDetail(t)}>
            <Dot tone={label.tone} />Tunnel {label.text}
          </span>
        );
      })}
    </>
  );
}

function tunnelDetail(t: Tunnel): string {
  const message = t.status?.conditions?.find((c) => c.type === "Ready")?.message ?? "";
  return [oneLine(message, 300), t.status?.restarts ? count(t.status.restarts, "restart") : ""].filter(Boolean).join(" · ");
}

function Connection(): VNode {
  const link = world.link.value;
  const version = world.hello.value?.version;
  const updated = world.updated.value;
  const paused = world.paused.value;
  return (
    <span class="connection">
      {link.state === "offline" ? (
        <strong class="offline" title={moment(link.since)}><Dot tone="bad" />Offline since {clock(link.since)}</strong>
      ) : link.state !== "live" ? (
        <span><Dot tone="calm" />Connecting</span>
      ) : paused > 0 ? (
        <strong class="paused" title={moment(paused)}><Dot tone="warn" />Paused<span class="since"> since {clock(paused)}</span></strong>
      ) : (
        <span class="live" title={updated ? moment(updated) : undefined}><Dot tone="good" />Live{updated > 0 && <span class="updated"> · updated {clock(updated, true)}</span>}</span>
      )}
      {paused > 0 && <button type="button" class="quiet" onClick={world.refresh}>Refresh</button>}
      <button type="button" class="quiet" aria-label={paused > 0 ? "Resume updates" : "Pause updates"} onClick={paused > 0 ? world.resume : world.pause}>{paused > 0 ? "Resume" : "Pause"}</button>
      {version && <span class="version">{oneLine(version, 40)}</span>}
    </span>
  );
}
