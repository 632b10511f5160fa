// Tools of other extensions for the model: those that they register here, and language-model tools of the editor that the
// user has chosen.
//
// Rule: a call comes only after the rules and the user have let it run. A tool of the editor is offered only where the
// setting names it, and runs without a chat of the editor.

import * as vscode from "vscode";
import type { CallToolParams, CallToolResult, ClientToolSpec, ToolContent } from "kode-protocol";
import { messageOf } from "../logic/words.ts";
import type { Server } from "./server.ts";

/** The provider of the editor's own language-model tools. */
const EDITOR = "vscode";

const SETTING = "tools.ofExtensions";

/** A tool of an extension. */
export interface ExtensionTool extends ClientToolSpec {
    /** Does the work; an error fails the call with its message. */
    run(input: unknown, token: vscode.CancellationToken): Thenable<string>;
}

type Carry = (params: CallToolParams, token: vscode.CancellationToken) => Thenable<CallToolResult>;

interface Provider {
    specs: ClientToolSpec[];
    carry: Carry;
}

/** Registers tools with the server, and carries out their calls. */
export class Tools implements vscode.Disposable {
    private readonly providers = new Map<string, Provider>();
    private readonly subscriptions: vscode.Disposable[];

    constructor(
        private readonly server: Server,
        private readonly log: vscode.LogOutputChannel,
    ) {
        server.onToolCall = (params, token) => this.call(params, token);
        this.subscriptions = [
            server.onConnection(({ state }) => {
                if (state === "ready") this.announce();
            }),
            vscode.workspace.onDidChangeConfiguration((change) => {
                if (change.affectsConfiguration(`kode.${SETTING}`)) this.offerChosen();
            }),
            vscode.extensions.onDidChange(() => this.offerChosen()),
        ];
        this.offerChosen();
    }

    /** Registers the tools of an extension, until the result is disposed of. */
    register(provider: string, tools: readonly ExtensionTool[]): vscode.Disposable {
        const offered: Provider = {
            specs: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
            carry: async ({ name, arguments: input }, token) => {
                const tool = tools.find((tool) => tool.name === name);
                if (!tool) throw new Error(`\`${provider}\` has no tool \`${name}\``);
                return { content: [{ type: "text", text: await tool.run(input, token) }], isError: false };
            },
        };
        this.replace(provider, offered);
        return new vscode.Disposable(() => {
            // A later list of the same provider stays.
            if (this.providers.get(provider) === offered) this.replace(provider, undefined);
        });
    }

    /** Has the user choose the language-model tools of extensions that the model gets. */
    async choose(): Promise<void> {
        const chosen = new Set(names());
        const items = vscode.lm.tools.map(({ name, description }) => ({
            label: name,
            detail: description,
            picked: chosen.has(name),
        }));
        if (items.length === 0) {
            void vscode.window.showInformationMessage("Kode: No installed extension has language-model tools.");
            return;
        }
        const options = { canPickMany: true as const, title: "Tools of extensions for the agent", matchOnDetail: true };
        const picked = await vscode.window.showQuickPick(items, options);
        if (!picked) return;
        const settings = vscode.workspace.getConfiguration("kode");
        await settings.update(SETTING, picked.map(({ label }) => label), vscode.ConfigurationTarget.Global);
    }

    dispose(): void {
        this.server.onToolCall = undefined;
        for (const subscription of this.subscriptions) subscription.dispose();
    }

    private offerChosen(): void {
        const chosen = new Set(names());
        const tools = vscode.lm.tools.filter(({ name }) => chosen.has(name));
        const specs = tools.map(({ name, description, inputSchema }) => ({
            name,
            description,
            inputSchema: { type: "object", ...inputSchema },
        }));
        this.replace(EDITOR, specs.length === 0 ? undefined : { specs, carry: invoke });
    }

    private replace(name: string, provider: Provider | undefined): void {
        if (provider) this.providers.set(name, provider);
        else if (!this.providers.delete(name)) return;
        void this.send(name, provider?.specs ?? []);
    }

    private announce(): void {
        for (const [name, { specs }] of this.providers) void this.send(name, specs);
    }

    private async send(provider: string, tools: ClientToolSpec[]): Promise<void> {
        try {
            await this.server.registerTools({ provider, tools });
        } catch (error) {
            this.log.warn(`the tools of ${provider} are not registered: ${messageOf(error)}`);
        }
    }

    private async call(params: CallToolParams, token: vscode.CancellationToken): Promise<CallToolResult> {
        const provider = this.providers.get(params.provider);
        try {
            if (!provider) throw new Error(`\`${params.provider}\` is gone`);
            return await provider.carry(params, token);
        } catch (error) {
            return { content: [{ type: "text", text: messageOf(error) }], isError: true };
        }
    }
}

function names(): string[] {
    return vscode.workspace.getConfiguration("kode").get<string[]>(SETTING, []);
}

/** Runs a language-model tool of the editor. */
async function invoke({ name, arguments: input }: CallToolParams, token: vscode.CancellationToken): Promise<CallToolResult> {
    const options = { input: input as object, toolInvocationToken: undefined };
    const { content } = await vscode.lm.invokeTool(name, options, token);
    return { content: content.map(part), isError: false };
}

function part(value: unknown): ToolContent {
    if (value instanceof vscode.LanguageModelTextPart) return { type: "text", text: value.value };
    return { type: "text", text: JSON.stringify(value) };
}
