// A text of the model. The renderer is a chunk of its own, which is read beside the first paint of the page.
//
// Rule: until the renderer is there, the text is shown as it is.

import { lazily } from "../lazily.tsx";
import { exact } from "../text.ts";
import type { MarkdownProps } from "./Rendered.tsx";

export const Markdown = lazily(
    () => import("./Rendered.tsx").then((found) => found.Rendered),
    ({ text }: MarkdownProps) => (
        <div class="markdown plain" dir="auto">
            {exact(text)}
        </div>
    ),
);
