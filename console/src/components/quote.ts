/** Return an argument as a shell reads it. */
export function quote(argument: string): string {
    return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}
