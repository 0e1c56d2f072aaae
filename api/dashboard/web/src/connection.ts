// The connection to the daemon's stream: reads lines, notices a lost daemon, tries again.
import type { Line } from "./model/mirror.ts";

/** Times in ms. A daemon that says nothing for silence is lost: its heartbeat comes three times as often. */
const silence = 45_000;
const firstDelay = 250;
const maxDelay = 4000;

export class Connection {
  private stopped = false;
  private abort = new AbortController();
  private heard = Date.now(); // when the last bytes came
  private connected = false;
  private wake: () => void = () => {};

  /** sink gets the lines of each piece that arrives, in order. */
  constructor(private readonly sink: (lines: Line[]) => void) {}

  /** run reads for ever, until stop or until a login is needed. */
  async run(): Promise<void> {
    const watchdog = setInterval(() => this.check(), 5000);
    for (let delay = firstDelay; !this.stopped; delay = Math.min(maxDelay, delay * 2)) {
      this.abort = new AbortController();
      try {
        if (await this.read()) delay = firstDelay;
      } catch {
        // The connection could not be made or broke off: the same as its end.
      }
      if (this.stopped) break;
      this.connected = false;
      this.sink([{ type: "OFFLINE", since: this.heard }]);
      await this.sleep(delay * (0.75 + Math.random() / 2));
    }
    clearInterval(watchdog);
  }

  /** check ends a connection over which nothing was heard for too long, and ends the wait for the next try. */
  check(): void {
    if (this.connected && Date.now() - this.heard > silence) this.abort.abort();
    else if (!this.connected) this.wake();
  }

  stop(): void {
    this.stopped = true;
    this.abort.abort();
    this.wake();
  }

  /** read reads one response to its end; true if anything came. */
  private async read(): Promise<boolean> {
    const timeout = setTimeout(() => this.abort.abort(), silence);
    const response = await fetch("/api/watch", { signal: this.abort.signal, cache: "no-store", credentials: "same-origin" }).finally(() => clearTimeout(timeout));
    if (response.status === 401 || response.status === 403) {
      this.stopped = true;
      this.sink([{ type: "LOGIN" }]);
      return false;
    }
    if (!response.ok || !response.body) return false;
    this.connected = true;
    this.heard = Date.now();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return true;
      this.heard = Date.now();
      const lines = (rest + value).split("\n");
      rest = lines.pop()!;
      const parsed = lines.flatMap(parse);
      if (parsed.length > 0) this.sink(parsed);
    }
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function parse(line: string): Line[] {
  if (line === "") return [];
  try {
    return [JSON.parse(line) as Line];
  } catch {
    return []; // cut off in the middle: the connection has ended
  }
}
