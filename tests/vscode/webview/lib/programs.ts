// The model's work in several tests, and its text.
//
// Rule: a program is here when more than one file of tests needs it; all others are where they are used.

import { call, text, type Program } from "./project";

/** A text of some numbered lines, from 1. */
export const numbered = (count: number): string => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join("");

/** Reads a file, changes some of its numbered lines by one call, and says something. */
export function changing(when: string, file: string, lines: Record<number, string>, said: string): Program {
    const path = `{{cwd}}/${file}`;
    const edits = Object.entries(lines).map(([number, line]) => ({
        old_string: `line ${number}\n`,
        new_string: `${line}\n`,
    }));
    return {
        when,
        steps: [
            { content: [call("Read", { file_path: path })] },
            { content: [call("MultiEdit", { file_path: path, edits })] },
            { content: [text(said)] },
        ],
    };
}

/** A question with two options, as the model puts it. */
export const COLOR = {
    question: "Which color?",
    header: "Color",
    multiSelect: false,
    options: [
        { label: "Red", description: "warm" },
        { label: "Blue", description: "cold" },
    ],
};

/** Hands whatever is asked to a sub-agent, whose prompt begins with “delegate”. */
export const delegating: Program = {
    steps: [
        {
            content: [
                call("Task", {
                    description: "Look around",
                    prompt: "delegate: look",
                    subagent_type: "general-purpose",
                }),
            ],
        },
        { content: [text("All done.")] },
    ],
};
