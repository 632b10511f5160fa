// Boxes at the entries of a task list: `- [ ] to do`, `- [x] done`.
//
// Rule: a box shows a state and cannot be clicked: the text is the model's.

import type markdownIt from "markdown-it";

type MarkdownIt = ReturnType<typeof markdownIt>;

const BOX = /^\[([ xX])\][ \t]+/;

/** Has the renderer draw boxes. */
export function withTasks(markdown: MarkdownIt): void {
    markdown.core.ruler.after("inline", "tasks", ({ tokens }) => {
        for (const [index, token] of tokens.entries()) {
            const entry = tokens[index - 2];
            const text = token.children?.[0];
            if (token.type !== "inline" || entry?.type !== "list_item_open" || text?.type !== "text") continue;
            const found = BOX.exec(text.content);
            if (!found) continue;
            text.content = text.content.slice(found[0].length);
            entry.attrJoin("class", found[1] === " " ? "task" : "task done");
        }
    });
    const draw = markdown.renderer.rules["list_item_open"];
    markdown.renderer.rules["list_item_open"] = (tokens, index, options, environment, self) => {
        const html = draw?.(tokens, index, options, environment, self) ?? self.renderToken(tokens, index, options);
        const name = String(tokens[index]?.attrGet("class") ?? "");
        if (!name.includes("task")) return html;
        const label = name.includes("done") ? "Done" : "Not done";
        return `${html}<span class="task-mark" role="img" aria-label="${label}"></span>`;
    };
}
