// A change that a call has proposed: each place as a diff, to be made or dropped by itself; after the call was denied, to be made
// after all.
//
// Rule: what was refused does not vanish. A place that was decided says so until the server has heard of all of them.

import type { HunkId } from "kode-protocol";
import { useState } from "preact/hooks";

import { useApp, useSelect } from "../app/context.ts";
import { decideProposals, resolveEdits } from "../app/edits.ts";
import { Card } from "./Card.tsx";
import { Diff } from "./Diff.tsx";
import type { Proposed } from "./proposed.ts";
import { replaced } from "./replaced.ts";
import { Aside, Title, toneOf, type CallItem } from "./ToolCard.tsx";

type Decided = "accept" | "reject";

export function ProposalCard({ item, proposals }: { item: CallItem; proposals: readonly Proposed[] }) {
    const { body } = item;
    const isWaiting = body.state === "APPROVAL_REQUIRED";
    return (
        <Card
            name={item.itemId}
            icon="edit"
            tone={toneOf(body)}
            title={<Title call={body} />}
            aside={<Aside call={body} />}
        >
            {() =>
                proposals.map((one) => (
                    <div key={one.hunk.hunkId} class="proposal">
                        <Diff unified="" files={[fileOf(one)]} named />
                        {isWaiting ? <Decide id={one.hunk.hunkId} /> : <AfterAll id={one.hunk.hunkId} />}
                    </div>
                ))
            }
        </Card>
    );
}

function Decide({ id }: { id: HunkId }) {
    const app = useApp();
    const [decided, setDecided] = useState<Decided>();
    const decide = async (action: Decided) => {
        if (await decideProposals(app, action, [id])) setDecided(action);
    };
    return (
        <div class="actions">
            <button
                type="button"
                class="quiet"
                aria-pressed={decided === "accept"}
                onClick={() => void decide("accept")}
            >
                Apply
            </button>
            <button
                type="button"
                class="quiet"
                aria-pressed={decided === "reject"}
                onClick={() => void decide("reject")}
            >
                Discard
            </button>
            {decided && <span class="state">decided; the others wait</span>}
        </div>
    );
}

function AfterAll({ id }: { id: HunkId }) {
    const app = useApp();
    const isMade = useSelect(({ edits }) => (edits?.files ?? []).some(({ hunks }) => hunks.some(({ hunkId }) => hunkId === id)));
    if (isMade) return <p class="hint">It was applied after all.</p>;
    return (
        <div class="actions">
            <button type="button" class="quiet" onClick={() => void resolveEdits(app, "accept", { hunkIds: [id] })}>
                Apply after all
            </button>
        </div>
    );
}

/** The place as the diff of its lines. */
function fileOf({ path, hunk }: Proposed) {
    return replaced(path, hunk.oldText, hunk.newText, hunk.lineRange.start + 1);
}
