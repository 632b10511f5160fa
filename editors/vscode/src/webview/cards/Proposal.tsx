// A change that a call has proposed: each place as a diff, to be made or dropped by itself; after the call was denied, to be made
// after all.
//
// Rule: what was refused does not vanish. A place that is to be made says so until the others are decided.

import type { HunkId } from "kode-protocol";
import { useState } from "preact/hooks";

import { useApp, useFollows, useSelect } from "../app/context.ts";
import { decideProposals, resolveEdits } from "../app/edits.ts";
import { Card } from "./Card.tsx";
import { Diff } from "./Diff.tsx";
import type { Proposed } from "./proposed.ts";
import { replaced } from "./replaced.ts";
import { Aside, Title, toneOf, type CallItem } from "./ToolCard.tsx";

export function ProposalCard({ item, proposals }: { item: CallItem; proposals: readonly Proposed[] }) {
    const { body } = item;
    const edits = useSelect((state) => state.edits);
    const listed = new Map((edits?.files ?? []).flatMap(({ hunks }) => hunks).map(({ hunkId, state }) => [hunkId, state]));
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
                        {listed.get(one.hunk.hunkId) === "proposed" ? (
                            <Decide id={one.hunk.hunkId} />
                        ) : (
                            <AfterAll id={one.hunk.hunkId} isMade={listed.has(one.hunk.hunkId)} />
                        )}
                    </div>
                ))
            }
        </Card>
    );
}

function Decide({ id }: { id: HunkId }) {
    const app = useApp();
    const follows = useFollows();
    const [accepted, setAccepted] = useState(false);
    if (follows) return null;
    const decide = async (action: "accept" | "reject") => {
        if (await decideProposals(app, action, [id])) setAccepted(action === "accept");
    };
    return (
        <div class="actions">
            <button type="button" class="quiet" onClick={() => void decide("accept")}>
                Apply
            </button>
            <button type="button" class="quiet" onClick={() => void decide("reject")}>
                Discard
            </button>
            {accepted && <span class="state">applied when the others are decided</span>}
        </div>
    );
}

function AfterAll({ id, isMade }: { id: HunkId; isMade: boolean }) {
    const app = useApp();
    const follows = useFollows();
    if (isMade) return <p class="hint">It was applied after all.</p>;
    return (
        <div class="actions">
            <span class="state">discarded</span>
            {!follows && (
                <button
                    type="button"
                    class="quiet"
                    onClick={() => void resolveEdits(app, "accept", { hunkIds: [id] })}
                >
                    Apply after all
                </button>
            )}
        </div>
    );
}

/** The place as the diff of its lines. */
function fileOf({ path, hunk }: Proposed) {
    return replaced(path, hunk.oldText, hunk.newText, hunk.lineRange.start + 1);
}
