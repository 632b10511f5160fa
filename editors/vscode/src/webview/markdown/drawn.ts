// Formulas and diagrams of finished blocks, drawn when the chunk that draws them is read.
//
// Rule: what cannot be drawn stays the text that it is. Each chunk is read with the first formula or diagram of the page.

/** Draws what an element has of formulas and diagrams. */
export function drawLater(root: HTMLElement): void {
    const formulas = [...root.querySelectorAll<HTMLElement>(".math:not(.drawn)")];
    if (formulas.length > 0) {
        void import("./formulas.ts").then(({ drawFormulas }) => drawFormulas(formulas), stay);
    }
    const diagrams = [...root.querySelectorAll<HTMLElement>('.code[data-language="mermaid"]:not(.drawn)')];
    if (diagrams.length > 0) {
        void import("./diagrams.ts").then(({ drawDiagrams }) => drawDiagrams(diagrams), stay);
    }
}

/** Draws the diagrams of the page again, in the colors of another theme. */
export function redraw(): void {
    for (const frame of document.querySelectorAll(".code.drawn")) frame.classList.remove("drawn");
    drawLater(document.body);
}

function stay(): void {
    // The chunk could not be read: the text stays.
}
