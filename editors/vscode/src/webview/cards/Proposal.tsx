// A change that a call has proposed: each place as a diff; after the call was denied, to be allowed after all.
//
// Rule: a denied proposal does not vanish. While it is asked for, the card that asks decides.

import type { HunkId } from "kode-protocol";

import { useApp, useFollows, useSelect } from "../app/context.ts";
import { resolveEdits } from "../app/edits.ts";
import { Card } from "./Card.tsx";
import { Diff } from "./Diff.tsx";
import type { Proposed } from "./proposed.ts";
import { replaced } from "./replaced.ts";
import { Aside, CallTitle, toneOf, type CallItem } from "./parts.tsx";

export function ProposalCard({ item, proposals }: { item: CallItem; proposals: readonly Proposed[] }) {
    const { body } = item;
    const edits = useSelect((state) => state.edits);
    const listed = new Map((edits?.files ?? []).flatMap(({ hunks }) => hunks).map(({ hunkId, state }) => [hunkId, state]));
    return (
        <Card
            name={item.itemId}
            icon="edit"
            tone={toneOf(body)}
            title={<CallTitle text={body.title || body.name} />}
            aside={<Aside call={body} />}
        >
            {() =>
                proposals.map((one) => (
                    <div key={one.hunk.hunkId} class="proposal">
                        <Diff unified="" files={[fileOf(one)]} named />
                        {listed.get(one.hunk.hunkId) !== "proposed" && (
                            <AfterAll id={one.hunk.hunkId} isMade={listed.has(one.hunk.hunkId)} />
                        )}
                    </div>
                ))
            }
        </Card>
    );
}

function AfterAll({ id, isMade }: { id: HunkId; isMade: boolean }) {
    const app = useApp();
    const follows = useFollows();
    if (isMade) return <p class="hint">It was allowed after all.</p>;
    return (
        <div class="actions">
            <span class="state">denied</span>
            {!follows && (
                <button
                    type="button"
                    class="quiet"
                    onClick={() => void resolveEdits(app, "accept", { hunkIds: [id] })}
                >
                    Allow after all
                </button>
            )}
        </div>
    );
}

/** The place as the diff of its lines. */
function fileOf({ path, hunk }: Proposed) {
    return replaced(path, hunk.oldText, hunk.newText, hunk.lineRange.start + 1);
}
