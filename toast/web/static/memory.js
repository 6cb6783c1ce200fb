// What this browser remembers of how its viewer likes it. Storage may be forbidden: then nothing.

const PREFIX = "toast.";

/** What was remembered under a name; null if nothing was. */
export function recall(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Remember a value under a name. */
export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, String(value));
  } catch {
    return; // not allowed, or full: it is only a comfort
  }
}
