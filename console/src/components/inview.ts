/** Keeping what opens above a page inside the window, wherever the button stands that opens it. */

const EDGE = 8; // pixels that stay free at either side

/**
 * Move an element sideways as far as it sticks out of the window, also when either changes its size; the result ends that.
 * Its styles move it by `--shift`.
 */
export function keepInView(element: HTMLElement | null | undefined): () => void {
    if (!element) return () => undefined;
    const place = (): void => {
        element.style.setProperty("--shift", "0px");
        const { left, right } = element.getBoundingClientRect();
        const beyond = right - document.documentElement.clientWidth + EDGE;
        element.style.setProperty("--shift", `${Math.max(Math.min(0, -beyond), EDGE - left)}px`);
    };
    place();
    const observer = new ResizeObserver(place);
    observer.observe(element);
    observer.observe(document.documentElement);
    return () => observer.disconnect();
}
