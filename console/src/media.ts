/** The width of the screen, where a component shows less on a small one and CSS alone cannot say what. */

import { signal } from "@preact/signals";

const small = matchMedia("(max-width: 640px)");

export const isNarrow = signal(small.matches);

small.addEventListener("change", () => {
    isNarrow.value = small.matches;
});
