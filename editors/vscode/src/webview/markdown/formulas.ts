// Formulas drawn by KaTeX, with its style sheet and fonts beside the chunks.
//
// Rule: TeX of the model is bounded in size and expansion, and can neither link nor load anything.

import katex from "katex";

let styled: Promise<void> | undefined;

/** Reads the style sheet with the first formula. A module has no nonce for it; the page's script has. */
function style(): Promise<void> {
    styled ??= new Promise((resolve) => {
        const link = document.createElement("link");
        link.rel = "stylesheet";
        link.nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";
        link.href = new URL("../formulas.css", import.meta.url).href;
        link.addEventListener("load", () => resolve());
        // Formulas without it are read by their text.
        link.addEventListener("error", () => resolve());
        document.head.append(link);
    });
    return styled;
}

/** Draws formulas in the place of their TeX. */
export async function drawFormulas(elements: readonly HTMLElement[]): Promise<void> {
    await style();
    for (const element of elements) {
        if (!element.isConnected || element.classList.contains("drawn")) continue;
        const tex = element.textContent ?? "";
        const box = document.createElement("span");
        try {
            katex.render(tex, box, {
                displayMode: element.dataset["math"] === "block",
                output: "htmlAndMathml",
                strict: "ignore",
                trust: false,
                maxSize: 40,
                maxExpand: 300,
            });
        } catch {
            // It is no TeX that can be drawn: its text stays.
            element.classList.add("drawn", "undrawn");
            continue;
        }
        element.classList.add("drawn");
        element.title = tex;
        element.replaceChildren(...box.childNodes);
    }
}
