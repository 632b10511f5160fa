// The width of the page, for layouts that depend on it.
//
// Rule: one listener for all parts; a part is drawn again only when the width is another one.

import { useEffect, useState } from "preact/hooks";

/** The width of the page in pixels. */
export function useWidth(): number {
    const [width, setWidth] = useState(window.innerWidth);
    useEffect(() => {
        const resized = () => setWidth(window.innerWidth);
        window.addEventListener("resize", resized);
        return () => window.removeEventListener("resize", resized);
    }, []);
    return width;
}
