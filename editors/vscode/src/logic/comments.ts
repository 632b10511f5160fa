// A round of comments on changes: the text for the agent, and what of its answer belongs to which comment.
//
// Rule: the agent gets the user's words, the places and the lines, and nothing else; what it does not answer by number stays
// open.

/** A comment on lines of a changed file. */
export interface ReviewComment {
    /** The file, as shown to people. */
    readonly path: string;
    /** The first and the last line, from 1. */
    readonly first: number;
    readonly last: number;
    /** The lines that it is about. */
    readonly lines: string;
    readonly words: string;
}

/** The most lines that are quoted. */
const MOST_LINES = 40;

const NUMBERED = /^\s{0,3}(?:#{1,6}\s*|\*\*|[-*]\s+\**)?comment\s+(\d+)\b\**\s*[:.)–-]?\**[ \t]*/i;

/** The text for the agent. */
export function promptOf(comments: readonly ReviewComment[]): string {
    const parts = comments.map((comment, index) => {
        const { path, first, last, lines, words } = comment;
        const place = first === last ? `line ${first}` : `lines ${first} to ${last}`;
        return `Comment ${index + 1} on ${path}, ${place}:\n${quoted(lines)}\n\n${words.trim()}`;
    });
    const head =
        comments.length === 1
            ? "I have a comment on your changes."
            : `I have ${comments.length} comments on your changes.`;
    const end = "When you are done, answer each in a paragraph of its own that begins with “Comment” and its number.";
    return [head, ...parts, end].join("\n\n");
}

function quoted(lines: string): string {
    const all = lines.replace(/\r?\n$/, "").split(/\r?\n/);
    const shown = all.slice(0, MOST_LINES).map((line) => `> ${line}`);
    return [...shown, ...(all.length > MOST_LINES ? [`> (${all.length - MOST_LINES} more lines)`] : [])].join("\n");
}

/** The answer to each comment by number; undefined without one. */
export function answersOf(text: string, count: number): (string | undefined)[] {
    const answers: string[][] = Array.from({ length: count }, () => []);
    let current: string[] | undefined;
    for (const line of text.split("\n")) {
        const match = NUMBERED.exec(line);
        const index = match ? Number(match[1]) - 1 : -1;
        if (match && answers[index]) {
            current = answers[index];
            current.push(line.slice(match[0].length));
        } else {
            current?.push(line);
        }
    }
    return answers.map((lines) => lines.join("\n").trim() || undefined);
}
