// Reads and searches that follow each other, as one quiet row.
//
// Rule: a failed one has a row of its own; see store/rows.ts.

import type { Item } from "kode-protocol";

import { counted, exactLine } from "../text.ts";
import { Card } from "./Card.tsx";
import { Output } from "./Output.tsx";
import { Aside, CallTitle, isOver, toneOf, type CallItem } from "./parts.tsx";

export function ReadsCard({ name, items }: { name: string; items: readonly Item[] }) {
    const calls = items.filter((item): item is CallItem => item.body.type === "toolCall");
    const [only] = calls;
    if (calls.length === 1 && only) return <LookCard name={name} item={only} />;
    const running = calls.some((call) => toneOf(call.body) === "running");
    return (
        <Card name={`${name}+`} icon="look" tone={running ? "running" : "quiet"} title={summaryOf(calls)}>
            {() => calls.map((call) => <LookCard key={call.itemId} name={call.itemId} item={call} />)}
        </Card>
    );
}

function LookCard({ name, item: { body } }: { name: string; item: CallItem }) {
    return (
        <Card
            name={name}
            icon={body.name === "Read" ? "file" : "look"}
            tone={toneOf(body) === "running" ? "running" : "quiet"}
            title={<CallTitle text={body.title || body.name} />}
            aside={<Aside call={body} />}
        >
            {isOver(body) ? () => <Output callId={body.callId} display={body.display} title={body.title} /> : undefined}
        </Card>
    );
}

/** The names of read files and the number of searches. */
export function summaryOf(calls: readonly CallItem[]): string {
    const reads = calls.filter(({ body }) => body.name === "Read");
    const names = [...new Set(reads.map(({ body }) => nameOf(body.input)))];
    const count = (...tools: string[]) => calls.filter(({ body }) => tools.includes(body.name)).length;
    const [searches, lists, problems] = [count("Grep", "Glob"), count("LS"), count("Diagnostics")];
    const parts = [
        names.length === 0 ? "" : names.length <= 2 ? `Read ${names.join(" and ")}` : `Read ${counted(names.length, "file")}`,
        searches === 0 ? "" : `searched ${searches === 1 ? "once" : `${searches} times`}`,
        lists === 0 ? "" : `listed ${counted(lists, "folder")}`,
        problems === 0 ? "" : "read the problems",
    ].filter(Boolean);
    const text = parts.join(", ");
    return text.charAt(0).toUpperCase() + text.slice(1);
}

function nameOf(input: unknown): string {
    const path = (input as { file_path?: unknown } | null)?.file_path;
    return typeof path === "string" ? exactLine(path.slice(path.lastIndexOf("/") + 1)) : "a file";
}
