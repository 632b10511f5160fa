// A session of thousands of messages, made by the real server with the scripted model.
//
// Rule: it is a session as any other; nothing of its journal is written by hand.

import { text, call, type Program } from "./project";
import type { Server } from "./server";

/** Answers of one turn: short of the server's turn limit. */
const STEPS = 84;

/** Messages of one answer, each with a check of a file between. */
const MESSAGES = 10;

const WORDS = "The quick brown fox jumps over the lazy dog and looks at `src/a.rs:10` before it goes on.";

function message(number: number): string {
    if (number % 50 === 0)
        return `### Part ${number}\n\n${WORDS}\n\n\`\`\`rust\nfn part_${number}() {\n    println!("{}", ${number});\n}\n\`\`\`\n`;
    if (number % 7 === 0) return `Message ${number}.\n\n- ${WORDS}\n- ${WORDS}\n`;
    return `Message ${number}. ${WORDS.repeat(1 + (number % 4))}`;
}

const turn = (index: number): Program => ({
    when: `^part ${index}$`,
    steps: [
        ...Array.from({ length: STEPS }, (_, step) => ({
            chunk: 4_000,
            content: Array.from({ length: MESSAGES }, (_, at) => [
                text(message((index * STEPS + step) * MESSAGES + at)),
                call("Read", {
                    file_path: "{{cwd}}/a.txt",
                    offset: 1 + ((step * MESSAGES + at) % 2_000),
                    limit: 1,
                }),
            ]).flat(),
        })),
        { content: [text(`End of part ${index}.`)] },
    ],
});

const TURNS = 6;

/** The programs that make the session. */
export const longPrograms: Program[] = Array.from({ length: TURNS }, (_, index) => turn(index));

/** How many messages of the model it has. */
export const LONG_MESSAGES = TURNS * (STEPS * MESSAGES + 1);

/** A file that is read. */
export const longFiles = { "a.txt": Array.from({ length: 2_000 }, (_, line) => `line ${line}`).join("\n") };

/** Makes the session; answers its id. */
export async function makeLong(server: Server): Promise<string> {
    const { sessionId } = await server.request("agent/session/new", {});
    for (let index = 0; index < TURNS; index += 1) {
        const done = server.event(({ event }) => event.type === "done", `the end of part ${index}`, 120_000);
        await server.request("agent/turn/start", {
            sessionId,
            input: [{ type: "text", text: `part ${index}` }],
        });
        await done;
    }
    return sessionId;
}

/** Pieces of the long stream: of each answer, and answers with a check of a file between. */
const PIECES = 1_000;
const ANSWERS = 20;
const PIECE = 12;
/** Pieces in a second. */
const RATE = 2_000;

/** Paragraphs of every length, so that the heights of rows are of every kind. */
export const paragraphs = (seed: number, characters: number): string => {
    let all = "";
    for (let count = seed; all.length < characters; count += 1)
        all += `${count % 9 === 0 ? "- " : ""}${"some words ".repeat(1 + ((count * 7) % 23))}${count}.\n\n`;
    return all.slice(0, characters);
};

/** The long stream: 20,000 pieces, ten times as fast as quick models write. */
export const pieces: Program = {
    when: "^pieces",
    steps: [
        ...Array.from({ length: ANSWERS }, (_, answer) => ({
            chunk: PIECE,
            rate: RATE,
            content: [
                text(paragraphs(answer, PIECES * PIECE)),
                call("Read", { file_path: "{{cwd}}/a.txt", offset: 1 + answer, limit: 1 }),
            ],
        })),
        { content: [text("End of the pieces.")] },
    ],
};
