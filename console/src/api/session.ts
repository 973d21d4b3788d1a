/** Who uses the console: the session of the server, which alone knows the credentials. */

import { computed, signal } from "@preact/signals";

import { ApiError, configure, explain, request } from "./client";
import { forgetPermissions } from "./permissions";

export interface Session {
    strategy: "noauth" | "http_basic" | "keystone";
    authenticated: boolean;
    user: string | null;
    project: string | null;
    expires_at: string | null;
    version: string;
    release: string;
}

export interface Credentials {
    user: string;
    password: string;
    user_domain?: string;
    project?: string;
    project_domain?: string;
}

const PATH = "/ingot/v1/session";

export const session = signal<Session | null>(null);

/** Why the session could not be read. */
export const sessionError = signal<string | null>(null);

/** Whether a session ended while it was in use. */
export const wasExpired = signal(false);

export const isAuthenticated = computed(() => session.value?.authenticated ?? false);

function set(found: Session): void {
    configure({ version: found.version });
    session.value = found;
    sessionError.value = null;
}

/** Read the session; without one the page of the login is shown. */
export async function readSession(): Promise<void> {
    try {
        set(await request<Session>("GET", PATH, { asksForLogin: true }));
    } catch (error) {
        sessionError.value = explain(error);
    }
}

/**
 * Log in.
 *
 * @throws ApiError with why the server refuses.
 */
export async function logIn(credentials: Credentials): Promise<void> {
    const begun = await request<Session>("POST", PATH, { body: credentials, asksForLogin: true });
    forgetPermissions();
    set(begun);
    wasExpired.value = false;
}

/** End the session here and on the server. */
export async function logOut(): Promise<void> {
    try {
        await request("DELETE", PATH, { asksForLogin: true });
    } catch (error) {
        if (!(error instanceof ApiError)) throw error;
    }
    location.reload(); // nothing that was read stays in memory
}

configure({
    refused: () => {
        if (session.value?.authenticated) {
            wasExpired.value = true;
            session.value = { ...session.value, authenticated: false };
        }
    },
});
