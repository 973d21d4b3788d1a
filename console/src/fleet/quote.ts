/** Values in the language of the fleet's filter. */

/** Return a value as a term of the filter has it: in quotes where a character of it would mean something else. */
export function quoteValue(value: string): string {
    return value === "" || /[\s,"*]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value;
}
