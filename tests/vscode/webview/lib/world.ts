// One test's world: a project, the scripted model, the real server, and the built page in a browser.
//
// Rule: a test ends with no complaint of the browser; what the policy refuses, and every fault of the page, fails it.

import assert from "node:assert/strict";
import { after, before } from "node:test";

import { chromium, type Browser } from "playwright-core";

import { ChatPage, type HostOptions } from "./host";
import { Project, type Program } from "./project";
import { ReplayServer } from "./replayed";
import type { Server } from "./server";

let browser: Browser;

/** Has the tests of a file share a browser. */
export function useBrowser(): void {
    before(async () => {
        const executablePath = process.env["CHROMIUM"];
        if (!executablePath) throw new Error("CHROMIUM names no program: set it to an installed Chromium");
        browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    });
    after(() => browser.close());
}

export interface World {
    project: Project;
    server: Server;
    chat: ChatPage;
}

export interface WorldOptions extends HostOptions {
    programs?: Program[];
    files?: Record<string, string>;
    environment?: Record<string, string>;
    /** The setup of the server before the page is opened. */
    prepare?: (server: Server, project: Project) => Promise<Partial<HostOptions["state"]> | void>;
}

/** Does something in a world of its own. */
export async function inWorld(options: WorldOptions, act: (world: World) => Promise<void>): Promise<void> {
    const project = await Project.create(options.programs ?? []);
    for (const [name, content] of Object.entries(options.files ?? {})) project.write(name, content);
    const server = await project.start(options.environment);
    let chat: ChatPage | undefined;
    try {
        const state = await options.prepare?.(server, project);
        chat = await ChatPage.open(browser, project, server, {
            ...options,
            state: { ...options.state, ...(state ?? {}) },
        });
        await act({ project, server, chat });
        assert.deepEqual(chat.complaints, []);
    } catch (error) {
        await tell(chat);
        throw error;
    } finally {
        const last = chat?.server ?? server;
        await chat?.close();
        await last.close();
        await server.close();
        project.close();
    }
}

/** Prints what a page of a failed test shows and what its browser complained of. */
async function tell(chat: ChatPage | undefined): Promise<void> {
    if (!chat) return;
    const shown = await chat.page.evaluate(() => document.body.innerText).catch((error: unknown) => String(error));
    console.error(`the page shows:\n${shown}\ncomplaints: ${JSON.stringify(chat.complaints)}`);
}

/** Does something with a page that hears the recorded session and nothing else. */
export async function inReplay(act: (chat: ChatPage, replayed: ReplayServer) => Promise<void>): Promise<void> {
    const { server, replayed } = ReplayServer.asServer();
    const chat = await ChatPage.open(browser, { workspace: "/project/workspace" }, server, {
        // All rows are on the page at once.
        height: 4_000,
        state: {
            sessionId: replayed.sessionId,
            settings: { enterSends: true, includeEditorContext: true, expandThinking: true, fontSize: 0, diffLayout: "auto" },
        },
    });
    try {
        await act(chat, replayed);
        assert.deepEqual(chat.complaints, []);
    } finally {
        await chat.close();
    }
}
