/** The provision state of a node as a path: the states of its flow in order, and where that can end else. */

/** How a state of the path stands. */
export type Standing = "passed" | "now" | "ahead";

export interface PathState {
    state: string;
    standing: Standing;
}

export interface StatePath {
    /** From where the flow begins to where it leads. */
    main: PathState[];
    /** Where it can be held or fail: the node is in one of them, or in none. */
    branches: PathState[];
}

interface Route {
    main: string[];
    branches: string[];
}

/** States in which nothing happens until it is requested, in the order in which a machine comes to them. */
const LIFE = ["enroll", "manageable", "available", "active"];

const DELETE: Route = {
    main: ["active", "deleting", "cleaning", "clean wait", "available"],
    branches: ["clean hold", "clean failed", "error"],
};

const ROUTES: Route[] = [
    { main: ["enroll", "verifying", "manageable"], branches: [] },
    { main: ["manageable", "inspecting", "inspect wait", "manageable"], branches: ["inspect failed"] },
    { main: ["manageable", "adopting", "active"], branches: ["adopt failed"] },
    { main: ["available", "deploying", "wait call-back", "active"], branches: ["deploy hold", "deploy failed"] },
    { main: ["active", "servicing", "service wait", "active"], branches: ["service hold", "service failed"] },
    { main: ["active", "rescuing", "rescue wait", "rescue"], branches: ["rescue failed"] },
    { main: ["rescue", "unrescuing", "active"], branches: ["unrescue failed"] },
];

const CLEANING = ["cleaning", "clean wait", "clean hold", "clean failed"];

function findRoute(state: string, target: string | null): Route {
    if (state === "rescue") return { main: [...LIFE, state], branches: [] };
    if (LIFE.includes(state)) return { main: LIFE, branches: [] };
    if (CLEANING.includes(state)) {
        // Manual cleanings go back to where they came from; the others come from manageable or from an instance's end.
        const main = target === "manageable" ? ["manageable", "cleaning", "clean wait", target] : DELETE.main.slice(2);
        return { main, branches: ["clean hold", "clean failed"] };
    }
    if (["deleting", "error"].includes(state)) return DELETE;
    return (
        ROUTES.find((route) => [...route.main.slice(1, -1), ...route.branches].includes(state)) ?? {
            main: [state],
            branches: [],
        }
    );
}

/** Return the way on which a node is. */
export function findPath(state: string, target: string | null): StatePath {
    const { main, branches } = findRoute(state, target);
    const found = main.indexOf(state);
    // Away from the main way, all before its end is passed; an instance's end fails before the cleaning.
    const at = found >= 0 ? found : state === "error" ? main.indexOf("deleting") + 1 : main.length - 1;
    const standingOf = (place: number): Standing => (place === found ? "now" : place < at ? "passed" : "ahead");
    return {
        main: main.map((name, place) => ({ state: name, standing: standingOf(place) })),
        branches: branches.map((name) => ({ state: name, standing: name === state ? "now" : "ahead" })),
    };
}

const WORDS: Record<Standing, string> = { passed: "passed", now: "now", ahead: "to come" };

/** Return how a state of the path stands in words. */
export function spellStanding({ standing }: PathState, isBranch: boolean): string {
    return isBranch && standing === "ahead" ? "possible" : WORDS[standing];
}
