/** Requests to the API, and its errors in the server's own words. */

import { isObject } from "../components/values";
import { noteServerTime } from "../live/clock";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What the API refused, or why it could not be asked. */
export class ApiError extends Error {
    /**
     * @param status of the answer; 0: there was none.
     * @param requestId under which the logs of the server have the request.
     */
    constructor(
        message: string,
        readonly status: number,
        readonly requestId: string | null = null,
    ) {
        super(message);
    }

    get text(): string {
        return this.requestId ? `${this.message} (${this.requestId})` : this.message;
    }
}

let version = "latest";
let refused: () => void = () => undefined;

/** Set the API version of all requests, and what is to happen when the session is over. */
export function configure(options: { version?: string; refused?: () => void }): void {
    version = options.version ?? version;
    refused = options.refused ?? refused;
}

export function currentVersion(): string {
    return version;
}

export function headers(): Record<string, string> {
    return { "X-Ingot-Console": "1", "X-OpenStack-Ironic-API-Version": version };
}

interface Options {
    body?: unknown;
    signal?: AbortSignal;
    /** Whether a refused login is the caller's to show. */
    asksForLogin?: boolean;
    /** Milliseconds after which the whole answer must be there. */
    limit?: number;
}

const LIMIT_MS = 75_000; // longer than the API waits for a conductor (60 s), so that its own words come first

/**
 * Send a request; `path` begins with /v1 or /ingot/v1.
 *
 * @throws ApiError with what the server says.
 */
export async function request<T>(method: Method, path: string, options: Options = {}): Promise<T> {
    return exchange(method, path, options, async (answer) => {
        const text = await answer.text();
        return (text ? JSON.parse(text) : null) as T;
    });
}

/**
 * Send a request whose answer is no JSON; `read` gets it.
 *
 * @throws ApiError with what the server says.
 */
export async function exchange<T>(
    method: Method,
    path: string,
    options: Options,
    read: (answer: Response) => Promise<T>,
): Promise<T> {
    const { limit = LIMIT_MS, signal } = options;
    const end = AbortSignal.timeout(limit);
    try {
        const answer = await send(method, path, options, signal ? AbortSignal.any([signal, end]) : end);
        if (answer.ok) return await read(answer);
        const message = readMessage(await answer.text(), answer);
        if (answer.status === 401 && !options.asksForLogin) refused();
        throw new ApiError(message, answer.status, answer.headers.get("OpenStack-Request-Id"));
    } catch (error) {
        if (error instanceof ApiError || signal?.aborted || error instanceof SyntaxError) throw error;
        if (end.aborted) throw new ApiError(describeSilence(method, limit), 0);
        throw new ApiError("The server cannot be reached.", 0);
    }
}

function describeSilence(method: Method, limit: number): string {
    const words = `The server has not answered within ${limit / 1000} seconds.`;
    return method === "GET" ? words : `${words} What was requested may have been done all the same.`;
}

async function send(method: Method, path: string, options: Options, signal: AbortSignal): Promise<Response> {
    const sent = { ...headers(), ...(options.body === undefined ? {} : { "Content-Type": "application/json" }) };
    const body = options.body === undefined ? null : JSON.stringify(options.body);
    const answer = await fetch(path, { method, headers: sent, body, credentials: "same-origin", cache: "no-store", signal });
    noteServerTime(answer.headers.get("Date"));
    return answer;
}

/** Return the message of an answer that is an error: its JSON has another JSON inside, for the clients of this API. */
export function readMessage(text: string, answer: Response): string {
    try {
        let found: unknown = JSON.parse(text);
        if (isObject(found) && "error_message" in found) {
            const inner = found["error_message"];
            found = typeof inner === "string" ? JSON.parse(inner) : inner;
        }
        if (isObject(found)) {
            const message = found["faultstring"] ?? found["description"] ?? found["message"];
            if (typeof message === "string") return message;
        }
    } catch {
        // A proxy answers in words of its own.
    }
    return `The server answered ${answer.status} ${answer.statusText}`.trimEnd() + ".";
}

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> =>
    request<T>("GET", path, signal ? { signal } : {});
export const post = <T>(path: string, body: unknown): Promise<T> => request<T>("POST", path, { body });
export const put = <T>(path: string, body?: unknown): Promise<T> => request<T>("PUT", path, { body });
export const patch = <T>(path: string, body: unknown): Promise<T> => request<T>("PATCH", path, { body });
export const remove = <T>(path: string): Promise<T> => request<T>("DELETE", path);

/** Return what an error says, whatever was thrown. */
export function explain(error: unknown): string {
    if (error instanceof ApiError) return error.text;
    return error instanceof Error ? error.message : String(error);
}
