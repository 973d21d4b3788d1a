/** What the browser remembers: preferences, never data of machines. */

const PREFIX = "ingot.";

/** Return what was stored under a name, or `otherwise` if nothing was or the browser refuses. */
export function load<T>(name: string, otherwise: T): T {
    try {
        const text = localStorage.getItem(PREFIX + name);
        return text === null ? otherwise : (JSON.parse(text) as T);
    } catch {
        return otherwise;
    }
}

/** Store a value; a browser that refuses forgets it with the page. */
export function save(name: string, value: unknown): void {
    try {
        localStorage.setItem(PREFIX + name, JSON.stringify(value));
    } catch {
        // Private windows may have no storage.
    }
}
