declare module "node:test" {
    export function test(name: string, run: () => void | Promise<void>): void;
}

declare module "node:assert/strict" {
    export function deepEqual(actual: unknown, expected: unknown): void;
    export function equal(actual: unknown, expected: unknown): void;
}
