// Keeps a view current: follows an event stream, reconnects after an interruption, and shows whether it is connected.

import { stream, Problem } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30000;
const listeners = new Set();
let state = "off";

export function onLiveState(listener) {
  listeners.add(listener);
  listener(state);
}

function become(next) {
  state = next;
  for (const listener of listeners) listener(state);
}

// Calls `changed(event)` for each event until the signal aborts. After a gap `changed` gets an event named "reset".
// Where it fails, the stream is followed again from before that event, after longer and longer pauses.
export async function follow(path, since, signal, changed) {
  let last = since;
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      become(pause === FIRST_PAUSE ? "live" : "waiting");
      for await (const event of stream(path, last, signal)) {
        become("live");
        await changed(event);
        pause = FIRST_PAUSE;
        last = event.id || last;
      }
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof Problem && [400, 401, 404].includes(error.status)) {
        become("off");
        return;
      }
      become("waiting");
    }
    await wait(pause * (0.5 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
  become("off");
}

function wait(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

// A function that calls `work` soon after it was called, and never twice within `milliseconds`.
export function throttled(work, milliseconds, signal) {
  let timer = null;
  let last = -Infinity;
  return () => {
    if (timer !== null || signal.aborted) return;
    const due = Math.max(50, last + milliseconds - performance.now());
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      if (!signal.aborted) work();
    }, due);
  };
}
