/** The whole console: the login or a page, and the dialogs and messages that any page opens. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { hasChanged, isAuthenticated, readSession, session, sessionError, wasExpired } from "./api/session";
import { Boundary } from "./components/boundary";
import { KeysDialog } from "./components/keys";
import { Empty, Problem } from "./components/loading";
import { Toasts } from "./components/toasts";
import { Layout } from "./layout";
import { useArrival } from "./components/arrival";
import { startFeed, stopFeed, whenConnected, whenRefused } from "./live/feed";
import { ConductorsPage } from "./pages/conductors";
import { FleetPage } from "./pages/fleet";
import { HomePage } from "./pages/home";
import { InboxPage } from "./pages/inbox";
import { LoginDialog, LoginPage } from "./pages/login";
import { NodePage } from "./pages/node";
import { PlansPage } from "./pages/plans";
import { address, match, path } from "./router";
import { VerbDialog } from "./verbs/dialog";

interface Page {
    pattern: string;
    title: (found: Record<string, string>) => string;
    show: (found: Record<string, string>) => JSX.Element;
}

const PAGES: Page[] = [
    { pattern: "/", title: () => "Home", show: () => <HomePage /> },
    { pattern: "/fleet", title: () => "Fleet", show: () => <FleetPage /> },
    {
        pattern: "/nodes/:node",
        title: ({ node }) => node ?? "",
        show: ({ node = "" }) => <NodePage key={node} node={node} />,
    },
    { pattern: "/plans", title: () => "Plans", show: () => <PlansPage /> },
    { pattern: "/conductors", title: () => "Conductors", show: () => <ConductorsPage /> },
    { pattern: "/inbox", title: () => "Inbox", show: () => <InboxPage /> },
];

function findPage(): { title: string; content: JSX.Element } {
    for (const page of PAGES) {
        const found = match(page.pattern, path.value);
        if (found) return { title: page.title(found), content: page.show(found) };
    }
    const content = (
        <Empty>
            There is no page {path.value}. <a href={address("/")}>Home</a>
        </Empty>
    );
    return { title: "No such page", content };
}

/** Shows the console. */
export function App(): JSX.Element {
    useEffect(() => {
        whenRefused(() => void readSession());
        whenConnected((isAgain) => isAgain && void readSession()); // another release, or another user in another tab
        void readSession();
    }, []);
    const isIn = isAuthenticated.value;
    useEffect(() => {
        if (isIn) startFeed();
        else stopFeed();
    }, [isIn]);
    const page = findPage();
    const title = isIn || wasExpired.value ? page.title : "Login";
    useArrival(path.value);
    useEffect(() => {
        document.title = `${title} · Ingot`;
    }, [title]);

    const isOver = hasChanged.value;
    useEffect(() => {
        if (isOver) location.reload();
    }, [isOver]);

    if (isOver) return <p class="loading">Loading…</p>;
    if (sessionError.value !== null && session.value === null) {
        return (
            <main class="login">
                <Problem text={sessionError.value} retry={() => void readSession()} />
            </main>
        );
    }
    if (session.value === null) return <p class="loading">Loading…</p>;
    if (!isIn && !wasExpired.value) return <LoginPage />;
    return (
        <>
            <Layout>
                <Boundary key={path.value}>{page.content}</Boundary>
            </Layout>
            <Boundary>
                <VerbDialog />
            </Boundary>
            <KeysDialog />
            <Toasts />
            {!isIn && <LoginDialog />}
        </>
    );
}
