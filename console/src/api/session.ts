/** Who uses the console: the session of the server, which alone knows the credentials. */

import { computed, signal } from "@preact/signals";

import { ApiError, configure, explain, request } from "./client";
import { renewPermissions } from "./permissions";

export interface Session {
    strategy: "noauth" | "http_basic" | "keystone";
    authenticated: boolean;
    user: string | null;
    project: string | null;
    version: string;
    /** Of the server. */
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

/** Whether another user has logged in than the one whose pages are shown: all that was read and typed is dropped. */
export const hasChanged = signal(false);

/** Whether the server was upgraded since this page was loaded. */
export const isUpgraded = signal(false);

/** Who has used this page, and the release of the server that it came from. */
let [shownTo, release]: [string | null, string | null] = [null, null];

function set(found: Session): void {
    configure({ version: found.version });
    const [user, before] = [JSON.stringify([found.user, found.project]), session.peek()];
    if (found.authenticated) {
        if (shownTo !== null && shownTo !== user) {
            hasChanged.value = true;
            return;
        }
        shownTo = user;
    } else if (before?.authenticated) wasExpired.value = true;
    release ??= found.release;
    isUpgraded.value = found.release !== release;
    session.value = found;
    sessionError.value = null;
    if (found.authenticated) wasExpired.value = false; // last: without both there would be no page for a moment
}

/** Read the session; without one a login is shown. */
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
    renewPermissions();
    set(begun);
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
        if (session.peek()?.authenticated) {
            wasExpired.value = true;
            session.value = { ...(session.peek() as Session), authenticated: false };
        }
    },
});
