// The rows of the transcript, each by its kind.
//
// Rule: a message is known by its heading. A row is drawn again only when its item is another one.

import type { CommandOutput, Item } from "kode-protocol";

import { useApp, useSelect } from "../app/context.ts";
import { showSession } from "../app/sessions.ts";
import { Markdown } from "../markdown/Markdown.tsx";
import { memo } from "../memo.tsx";
import { Icon } from "../panels/Icon.tsx";
import type { Row } from "../store/rows.ts";
import { counted, exactLine } from "../text.ts";
import { Card } from "./Card.tsx";
import { ReadsCard } from "./ReadsCard.tsx";
import { NoticeRow } from "./Notice.tsx";
import { ToolCard } from "./ToolCard.tsx";
import { TurnEndRow } from "./TurnEnd.tsx";
import { UserRow } from "./UserRow.tsx";

/** A row of the transcript. */
export const RowView = memo(function RowView({ row }: { row: Row }) {
    if (row.kind === "looks") return <ReadsCard name={row.key} items={row.items} />;
    if (row.kind === "end") return <TurnEndRow turn={row.turn} />;
    const { item } = row;
    const { body } = item;
    switch (body.type) {
        case "userMessage":
            return <UserRow item={item} />;
        case "agentMessage":
            return (
                <div class="said">
                    <h2 class="unseen">Kode</h2>
                    <Markdown text={body.text} complete={body.complete} />
                    {body.interrupted && <p class="broke-off">Interrupted here.</p>}
                </div>
            );
        case "thinking":
            return <ThinkingRow item={item} text={body.text} complete={body.complete} />;
        case "toolCall":
            return <ToolCard item={{ ...item, body }} />;
        case "notice":
            return <NoticeRow item={item} notice={body} />;
        case "command":
            return <CommandRow command={body} />;
        default:
            return null;
    }
});

/** The label of a row, for keyboard navigation. */
export function rowLabel(row: Row): string {
    if (row.kind === "looks") return counted(row.items.length, "read of the project", "reads of the project");
    if (row.kind === "end") return "End of the turn";
    const { body } = row.item;
    switch (body.type) {
        case "userMessage":
            return "You";
        case "agentMessage":
            return "Kode";
        case "thinking":
            return "Thinking";
        case "toolCall":
            return `Tool: ${exactLine(body.title)}`;
        case "notice":
            return `Notice: ${exactLine(body.text).slice(0, 80)}`;
        case "command":
            return `Output of the command ${exactLine(body.name)}`;
        default:
            return "Item";
    }
}

/** The output of a command, which no model reads. */
function CommandRow({ command }: { command: CommandOutput }) {
    const app = useApp();
    const failed = command.failed === true;
    const { goTo } = command;
    return (
        <section class={failed ? "command-output failed" : "command-output"}>
            <h2 class="command-name">
                <Icon name={failed ? "warning" : "command"} />
                <bdi>/{exactLine(command.name)}</bdi>
                {failed && <span class="state">failed</span>}
            </h2>
            <Markdown text={command.text} complete />
            {goTo !== undefined && (
                <button type="button" class="quiet" onClick={() => void showSession(app, goTo)}>
                    Show that session
                </button>
            )}
        </section>
    );
}

function ThinkingRow({ item, text, complete }: { item: Item; text: string; complete: boolean }) {
    const habit = useSelect((state) => state.host?.settings.expandThinking ?? false);
    const last = complete ? "" : exactLine(text.trimEnd().split("\n").at(-1) ?? "");
    return (
        <Card
            name={item.itemId}
            icon="think"
            tone={complete ? "quiet" : "running"}
            habit={habit}
            title={complete ? <span>Thought</span> : <span>Thinking {last}</span>}
        >
            {() => (
                <div class="thought">
                    <Markdown text={text} complete={complete} />
                </div>
            )}
        </Card>
    );
}
