// The text of an output, in the colors that the command gave it.
//
// Rule: everything but colors is shown exactly. Colors are set by script, because the page's policy refuses style
// attributes.

import { exact } from "../text.ts";
import { hasSequences, pieces, type Style } from "./ansi.ts";

export function OutputText({ text }: { text: string }) {
    if (!hasSequences(text)) return <>{exact(text)}</>;
    return (
        <>
            {pieces(text).map((piece, index) =>
                Object.keys(piece.style).length === 0 ? (
                    exact(piece.text)
                ) : (
                    <span key={index} class={classesOf(piece.style)} style={colorsOf(piece.style)}>
                        {exact(piece.text)}
                    </span>
                ),
            )}
        </>
    );
}

function classesOf(style: Style): string {
    const names = ["bold", "dim", "italic", "underline", "strike"] as const;
    return names.flatMap((name) => (style[name] ? [`a-${name}`] : [])).join(" ");
}

function colorsOf({ color, background }: Style): Record<string, string> {
    return {
        ...(color === undefined ? {} : { color }),
        ...(background === undefined ? {} : { backgroundColor: background }),
    };
}
