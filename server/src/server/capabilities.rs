//! The capabilities that `initialize` answers with.
//!
//! Rule: a capability is announced only to clients that can use it.

use kode_protocol as wire;
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeLensOptions, CompletionOptions,
    ExecuteCommandOptions, HoverProviderCapability, OneOf, SaveOptions, ServerCapabilities,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
    WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};
use serde_json::json;

use crate::client::ClientFacts;
use crate::documents::{BASELINE_SCHEME, PROPOSED_SCHEME};
use crate::lsp::newer::TEXT_DOCUMENT_CONTENT;
use crate::plain::{asking, chat, commands, completion, review};

/// The capabilities for a client with these facts.
pub(super) fn capabilities(facts: &ClientFacts) -> ServerCapabilities {
    let kode = wire::ServerKode {
        protocol_version: wire::PROTOCOL_VERSION,
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        commands: commands::names(),
        schema_hash: wire::SCHEMA_HASH.to_owned(),
    };
    let mut experimental = json!({ "kode": kode });
    if facts.text_document_content {
        experimental[TEXT_DOCUMENT_CONTENT] = json!({ "schemes": [BASELINE_SCHEME, PROPOSED_SCHEME] });
    }
    ServerCapabilities {
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QUICKFIX,
                review::actions::HERE,
                review::actions::EVERYWHERE,
                asking::ASKING,
                chat::offers::CHAT,
            ]),
            ..CodeActionOptions::default()
        })),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
        completion_provider: facts.completion.then(|| CompletionOptions {
            resolve_provider: Some(false),
            trigger_characters: Some(completion::TRIGGERS.map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: commands::names(),
            ..ExecuteCommandOptions::default()
        }),
        position_encoding: Some(facts.encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
            will_save: Some(true),
            ..TextDocumentSyncOptions::default()
        })),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(OneOf::Left(true)),
            }),
            file_operations: None,
        }),
        experimental: Some(experimental),
        ..ServerCapabilities::default()
    }
}
