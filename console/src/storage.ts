/** What the browser remembers: preferences, never data of machines. */

const PREFIX = "ingot.";

function isAlike(value: unknown, other: unknown): boolean {
    return typeof value === typeof other && Array.isArray(value) === Array.isArray(other) && value !== null;
}

/**
 * Return what was stored under a name, or `otherwise` if nothing was, if the browser refuses, or if it is damaged.
 *
 * @param fits whether a value is as it must be; none: it must be of the type of `otherwise`.
 */
export function load<T>(name: string, otherwise: T, fits?: (value: unknown) => boolean): T {
    try {
        const text = localStorage.getItem(PREFIX + name);
        const value: unknown = text === null ? otherwise : JSON.parse(text);
        return (fits ? fits(value) : isAlike(value, otherwise)) ? (value as T) : otherwise;
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
