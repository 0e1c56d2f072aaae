// The shared worker: one connection to the daemon for all tabs. A tab that opens is told the present first.
import { Connection } from "./connection.ts";
import { Mirror, type Line } from "./model/mirror.ts";

interface SharedWorkerScope {
  onconnect: ((event: MessageEvent) => void) | null;
}

const ports = new Set<MessagePort>();
let mirror = new Mirror();
let connection: Connection | undefined;

function start(): void {
  connection = new Connection((lines: Line[]) => {
    for (const line of lines) mirror.apply(line);
    for (const port of ports) port.postMessage(lines);
    if (lines.some((line) => line.type === "LOGIN")) stop(); // the tabs reload, and come again with a login
  });
  void connection.run();
}

function stop(): void {
  connection?.stop();
  connection = undefined;
  mirror = new Mirror();
}

(self as unknown as SharedWorkerScope).onconnect = (event) => {
  const port = event.ports[0]!;
  port.onmessage = (message: MessageEvent<"bye" | "check">) => {
    if (message.data === "check") return connection?.check();
    ports.delete(port);
    port.close();
    if (ports.size === 0) stop();
  };
  ports.add(port);
  if (!connection) start();
  port.postMessage(mirror.replay());
};
