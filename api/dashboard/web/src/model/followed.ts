// Which outputs are followed: a few at a time, since a browser has six connections to a host over all of its tabs.
// The others wait in the order in which they came, and the first of them is next when there is room.

export const most = 3;

export interface Followed {
  followed: string[]; // the latest last
  waiting: string[]; // the next first
}

export const none: Followed = { followed: [], waiting: [] };

/** come adds one, which is followed if there is room. */
export function come(f: Followed, id: string): Followed {
  const g = leave(f, id);
  if (g.followed.length < most) return { ...g, followed: [...g.followed, id] };
  return { ...g, waiting: [...g.waiting, id] };
}

/** choose follows one in place of the one that is followed longest, which is the next to wait. */
export function choose(f: Followed, id: string): Followed {
  const all = [...f.followed.filter((other) => other !== id), id];
  const over = all.slice(0, Math.max(0, all.length - most));
  return { followed: all.slice(-most), waiting: [...over, ...f.waiting.filter((other) => other !== id)] };
}

/** leave takes one out. */
export function leave(f: Followed, id: string): Followed {
  const left = f.followed.filter((other) => other !== id);
  const waiting = f.waiting.filter((other) => other !== id);
  const room = most - left.length;
  return { followed: [...left, ...waiting.slice(0, room)], waiting: waiting.slice(room) };
}
