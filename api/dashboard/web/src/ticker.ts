// One clock for everything that shows how long something lasts or lies back. Each second it writes the texts that are
// in view, and nothing else is rendered.
import { hello } from "./world.ts";

type Write = (now: number) => string;

const texts = new Map<Element, Write>();
const inView = new Set<Element>();
let skew = 0; // the daemon's clock less ours, in ms

const observer = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (e.isIntersecting && texts.has(e.target)) {
      inView.add(e.target);
      write(e.target);
    } else inView.delete(e.target);
  }
});

/** tick keeps the text of an element up to date while it is in view, and returns how to end that. */
export function tick(el: Element, text: Write): () => void {
  texts.set(el, text);
  write(el);
  observer.observe(el);
  return () => {
    texts.delete(el);
    inView.delete(el);
    observer.unobserve(el);
  };
}

/** now is the time of the daemon's clock, in ms since 1970. */
export function now(): number {
  return Date.now() + skew;
}

function write(el: Element): void {
  const text = texts.get(el)?.(now()) ?? "";
  if (el.textContent !== text) el.textContent = text;
}

hello.subscribe((h) => {
  const apart = h?.now === undefined ? 0 : h.now - Date.now();
  skew = Math.abs(apart) > 2000 ? apart : 0; // less is the way through the network
});

setInterval(() => {
  if (!document.hidden) inView.forEach(write);
}, 1000);
