// One project: how the person is told of its handoffs, and its threads.
import { useState } from "preact/hooks";
import type { VNode } from "preact";
import * as alerting from "../alerting.ts";
import * as api from "../api.ts";
import type { Project } from "../model/kinds.ts";
import { projectName } from "../model/state.ts";
import { attempt, markRead } from "../page.ts";
import * as world from "../world.ts";
import { Threads } from "./nav.tsx";
import { Ago, Copy, Fact, Id, More, Name, Path, Section, Switch } from "./parts.tsx";

const first = 50;

export function ProjectView({ project }: { project: Project }): VNode {
  const id = project.metadata.name;
  const threads = world.threadsOfProject.value.get(id) ?? [];
  const [shown, setShown] = useState(first);
  const unread = world.unread.value.filter((h) => world.thread(h.spec.threadRef.name)?.spec.projectRef.name === id);
  return (
    <>
      <div class="head">
        <div class="title-row">
          <h1 tabIndex={-1}><Name text={projectName(project)} /></h1>
          <span class="grow" />
          {unread.length > 0 && <button type="button" onClick={() => void markRead(unread.map((h) => h.metadata.name))}>Mark project read</button>}
        </div>
        <dl class="facts">
          <Fact term="Root"><Path path={project.spec.root} /><Copy text={project.spec.root} what="root path" /></Fact>
          <Fact term="Identity"><Path path={project.spec.identity} /></Fact>
          <Fact term="Project"><Id id={id} what="project id" /></Fact>
          <Fact term="Last used"><Ago at={world.lastUsed(project)} /></Fact>
        </dl>
      </div>
      <Alerts project={project} />
      <Section title={`Threads (${threads.length.toLocaleString("en")})`} id="threads">
        <Threads threads={threads.slice(0, shown)} />
        <More left={threads.length - shown} what="threads" show={() => setShown(shown + 100)} />
      </Section>
    </>
  );
}

function Alerts({ project }: { project: Project }): VNode {
  const id = project.metadata.name;
  const desktop = project.spec.notifications?.desktop ?? false;
  const browser = alerting.state.value.projects.includes(id);
  const live = world.link.value.state === "live";
  const why = alerting.unavailable.value;
  return (
    <Section title="When it is your turn" id="alerts">
      <div class="switches">
        <div>
          <Switch on={desktop} disabled={!live} change={(on) => void attempt(() => api.desktopAlerts(id, on))}>Desktop alerts</Switch>
          <p class="hint">The daemon tells this computer’s desktop, also when this page is closed.</p>
        </div>
        <div>
          <Switch on={browser && why === ""} disabled={!live || (why !== "" && !browser)} change={(on) => void alerting.turn(id, on)}>Browser alerts</Switch>
          <p class="hint">{why || "This browser tells you while one of its tabs has this page open."}</p>
        </div>
      </div>
    </Section>
  );
}
