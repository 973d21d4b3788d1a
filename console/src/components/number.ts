/** Numbers as people read them. */

const FORMAT = new Intl.NumberFormat();

/** Return a number with marks between thousands. */
export function formatNumber(value: number): string {
    return FORMAT.format(value);
}
