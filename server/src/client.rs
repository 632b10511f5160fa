//! The client's data in `initialize`.
//!
//! Rule: read once, by capability and never by client name; whatever is missing or null counts as not
//! offered, and so do capabilities of ours that cannot be read.

use kode_engine::base::paths::AbsPath;
use kode_protocol::{ClientKode, PROTOCOL_VERSION};
use lsp_types::{
    ClientCapabilities, CompletionClientCapabilities, InitializeParams, MarkupKind, ResourceOperationKind,
    TraceValue, Url,
};
use serde_json::Value;

use crate::documents::file_path;
use crate::lsp::PositionEncoding;
use crate::lsp::newer::TEXT_DOCUMENT_CONTENT;
use crate::processes::is_editor;

/// The field of `initializationOptions` that says what the client can do and does not tell.
const UNSAID: &str = "clientCapabilities";

/// The field of `initializationOptions` that takes away the code actions that ask.
const ASK_ACTIONS: &str = "askActions";

/// The facts about one client, fixed for the life of the connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientFacts {
    /// The client's name, for logs and reports only.
    pub name: Option<String>,
    /// The client's version, for logs and reports only.
    pub version: Option<String>,
    /// The language of the client's own texts, such as `de` or `pt-BR`.
    pub locale: Option<String>,
    /// The process whose end is our end, as the client names it: it may be one of another host.
    pub process_id: Option<u32>,
    /// The folders of the workspace; empty for a single file.
    pub roots: Vec<WorkspaceRoot>,
    /// How much of our work the client wants to see in `$/logTrace`.
    pub trace: TraceValue,
    /// The user's settings as the client passes them; `Null` if none exist.
    pub initialization_options: Value,
    /// The unit of positions.
    pub encoding: PositionEncoding,
    /// Whether `workspace/applyEdit` is understood.
    pub apply_edit: bool,
    /// Whether edits may carry document versions.
    pub document_changes: bool,
    /// Whether edits may delete files.
    pub delete_files: bool,
    /// Whether edits may carry change annotations.
    pub change_annotations: bool,
    /// Whether `window/showMessageRequest` with actions is understood.
    pub show_message_request: bool,
    /// Whether `window/showDocument` is understood.
    pub show_document: bool,
    /// Whether `workspace/configuration` is answered.
    pub configuration: bool,
    /// Whether the server may ask for notifications of changes of the configuration.
    pub configuration_registration: bool,
    /// Whether the server may create progress of its own.
    pub work_done_progress: bool,
    /// Whether `workspace/codeLens/refresh` is understood.
    pub code_lens_refresh: bool,
    /// Whether code actions may be more than commands.
    pub code_action_literals: bool,
    /// Whether code actions may ask about problems and selections.
    pub ask_actions: bool,
    /// Whether a code action's edit is asked about when its annotation says so.
    pub honors_change_annotations: bool,
    /// Whether completion is asked for.
    pub completion: bool,
    /// Whether completion may be so old that it replaces the word at the cursor, whatever an item says.
    pub completes_words: bool,
    /// Whether hovers are shown as Markdown.
    pub hover_markdown: bool,
    /// Whether virtual documents are read by `workspace/textDocumentContent`.
    pub text_document_content: bool,
    /// The offer of a plugin of ours; all absent in other clients.
    pub kode: ClientKode,
}

/// A folder of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRoot {
    /// The folder.
    pub path: AbsPath,
    /// Its name in the settings.
    pub name: String,
}

impl ClientFacts {
    /// The process of the editor, if it is one of this host.
    #[must_use]
    pub fn editor_process(&self) -> Option<u32> {
        self.process_id.filter(|process| is_editor(*process))
    }

    /// Reads the parameters of `initialize`.
    #[must_use]
    pub fn new(params: InitializeParams) -> Self {
        let roots = roots(&params);
        let InitializeParams {
            process_id,
            initialization_options,
            capabilities,
            trace,
            client_info,
            locale,
            ..
        } = params;
        let asks = |options: &Value| options.get(ASK_ACTIONS).and_then(Value::as_bool);
        let ask_actions = initialization_options.as_ref().and_then(asks).unwrap_or(true);
        let capabilities = with_unsaid(capabilities, initialization_options.as_ref());
        let ClientCapabilities { workspace, window, general, experimental, text_document, .. } = capabilities;
        let text_document = text_document.unwrap_or_default();
        let code_action = text_document.code_action.unwrap_or_default();
        let hover_formats = text_document.hover.and_then(|hover| hover.content_format).unwrap_or_default();
        let workspace = workspace.unwrap_or_default();
        let workspace_edit = workspace.workspace_edit.unwrap_or_default();
        // Neovim announces only capabilities within `documentChanges`: operations on files. Without a version it puts
        // an edit into a text the edit was not computed on.
        let operations = workspace_edit.resource_operations.unwrap_or_default();
        let window = window.unwrap_or_default();
        let offered = general.and_then(|general| general.position_encodings).unwrap_or_default();
        let (name, version) = client_info.map_or((None, None), |info| (Some(info.name), info.version));
        Self {
            name,
            version,
            locale,
            process_id,
            roots,
            trace: trace.unwrap_or_default(),
            initialization_options: initialization_options.unwrap_or_default(),
            encoding: PositionEncoding::negotiate(&offered),
            apply_edit: workspace.apply_edit.unwrap_or_default(),
            document_changes: workspace_edit.document_changes.unwrap_or(!operations.is_empty()),
            delete_files: operations.contains(&ResourceOperationKind::Delete),
            change_annotations: workspace_edit.change_annotation_support.is_some(),
            configuration: workspace.configuration.unwrap_or_default(),
            configuration_registration: workspace
                .did_change_configuration
                .and_then(|configuration| configuration.dynamic_registration)
                .unwrap_or_default(),
            show_message_request: window.show_message.is_some(),
            show_document: window.show_document.as_ref().is_some_and(|document| document.support),
            work_done_progress: window.work_done_progress.unwrap_or_default(),
            code_lens_refresh: workspace.code_lens.and_then(|lens| lens.refresh_support).unwrap_or_default(),
            completes_words: text_document.completion.as_ref().is_some_and(completes_words),
            completion: text_document.completion.is_some(),
            ask_actions,
            code_action_literals: code_action.code_action_literal_support.is_some(),
            honors_change_annotations: code_action.honors_change_annotations.unwrap_or_default(),
            hover_markdown: hover_formats.contains(&MarkupKind::Markdown),
            text_document_content: experimental
                .as_ref()
                .and_then(|all| all.get(TEXT_DOCUMENT_CONTENT))
                .is_some_and(Value::is_object),
            kode: kode_capabilities(experimental),
        }
    }
}

/// Whether a client tells nothing of completion that came after its first version, as those do that heed no ranges.
fn completes_words(completion: &CompletionClientCapabilities) -> bool {
    let item = completion.completion_item.as_ref();
    let resolves = item.is_some_and(|item| item.resolve_support.is_some());
    !resolves && completion.context_support != Some(true) && completion.completion_item_kind.is_none()
}

/// The first of the three ways to name the workspace that names anything.
fn roots(params: &InitializeParams) -> Vec<WorkspaceRoot> {
    let folders = params.workspace_folders.iter().flatten();
    let folders: Vec<_> = folders.filter_map(|folder| root_of(&folder.uri, Some(&folder.name))).collect();
    if !folders.is_empty() {
        return folders;
    }
    #[expect(deprecated, reason = "old clients know nothing newer")]
    let old = params.root_uri.as_ref().and_then(|uri| root_of(uri, None)).or_else(|| {
        let path = AbsPath::new(params.root_path.as_deref()?).ok()?;
        Some(WorkspaceRoot { name: path.file_name(), path })
    });
    old.into_iter().collect()
}

/// A workspace folder as a root; `None` when it is not on this machine.
pub(crate) fn root_of(uri: &Url, name: Option<&str>) -> Option<WorkspaceRoot> {
    let Some(path) = file_path(uri) else {
        tracing::warn!(%uri, "a workspace folder that is no folder on this machine is left out");
        return None;
    };
    Some(WorkspaceRoot { name: name.map_or_else(|| path.file_name(), str::to_owned), path })
}

/// The capabilities with those that the user says the client has beyond what it tells: some clients apply edits, or ask
/// the user, and do not say so.
fn with_unsaid(reported: ClientCapabilities, options: Option<&Value>) -> ClientCapabilities {
    let Some(unsaid) = options.and_then(|options| options.get(UNSAID)) else { return reported };
    let merged = serde_json::to_value(&reported).and_then(|mut merged| {
        merge(&mut merged, unsaid);
        serde_json::from_value(merged)
    });
    merged.unwrap_or_else(|error| {
        tracing::warn!(%error, "{UNSAID} of initializationOptions cannot be read and counts as absent");
        reported
    })
}

/// Puts `more` over `value`: objects field by field, everything else as a whole.
fn merge(value: &mut Value, more: &Value) {
    match (value, more) {
        (Value::Object(value), Value::Object(more)) => {
            for (name, more) in more {
                merge(value.entry(name).or_insert(Value::Null), more);
            }
        }
        (value, more) => *value = more.clone(),
    }
}

fn kode_capabilities(experimental: Option<Value>) -> ClientKode {
    let Some(kode) = experimental.and_then(|mut value| value.get_mut("kode").map(Value::take)) else {
        return ClientKode::default();
    };
    match serde_json::from_value::<ClientKode>(kode) {
        Ok(kode) if kode.protocol_version == PROTOCOL_VERSION => kode,
        Ok(kode) => {
            let version = kode.protocol_version;
            tracing::warn!(version, "the client speaks another version of the protocol and gets plain LSP");
            ClientKode::default()
        }
        Err(error) => {
            tracing::warn!(%error, "the client's `experimental.kode` capabilities are illegible and count as absent");
            ClientKode::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(params: Value) -> ClientFacts {
        ClientFacts::new(serde_json::from_value(params).unwrap())
    }

    #[test]
    fn a_client_that_may_heed_no_ranges_is_known_by_what_it_does_not_report() {
        let reported = json!({ "completionItem": { "resolveSupport": { "properties": ["detail"] } } });
        let ale = json!({ "completionItem": { "snippetSupport": false }, "contextSupport": false });
        for (completion, expected) in [
            (ale, true),
            (reported, false),
            (json!({ "contextSupport": true }), false),
            (json!({ "completionItemKind": {} }), false),
            (json!(null), false),
        ] {
            let shown = completion.to_string();
            let facts = facts(json!({ "capabilities": { "textDocument": { "completion": completion } } }));
            assert_eq!(facts.completes_words, expected, "{shown}");
        }
    }

    /// The parts that differ between the clients, as Vim with ALE, Neovim, VS Code, Emacs with Eglot, Helix and
    /// Kakoune send them.
    #[test]
    fn capabilities_of_real_clients() {
        let edits = |value: Value| json!({"applyEdit": true, "workspaceEdit": value});
        let annotated =
            json!({"changeAnnotationSupport": {"groupsOnLabel": true}, "normalizesLineEndings": true});
        let mut neovim = annotated.clone();
        neovim["resourceOperations"] = json!(["rename", "create", "delete"]);
        let mut vscode = annotated;
        vscode["documentChanges"] = json!(true);
        vscode["failureHandling"] = json!("textOnlyTransactional");
        for (client, workspace, encodings, expected) in [
            (
                "ale",
                json!({"applyEdit": false, "configuration": false, "workspaceFolders": false}),
                json!(null),
                (PositionEncoding::Utf16, false, false, false),
            ),
            (
                "neovim",
                edits(neovim),
                json!(["utf-8", "utf-16", "utf-32"]),
                (PositionEncoding::Utf8, true, true, true),
            ),
            ("vscode", edits(vscode), json!(["utf-16"]), (PositionEncoding::Utf16, true, true, true)),
            (
                "eglot",
                edits(json!({"documentChanges": true})),
                json!(["utf-32", "utf-8", "utf-16"]),
                (PositionEncoding::Utf32, true, true, false),
            ),
            (
                "helix",
                edits(json!({"documentChanges": true, "failureHandling": "abort"})),
                json!(["utf-8", "utf-32", "utf-16"]),
                (PositionEncoding::Utf8, true, true, false),
            ),
            (
                "kakoune",
                edits(json!({"documentChanges": true, "changeAnnotationSupport": {}})),
                json!(["utf-8", "utf-16"]),
                (PositionEncoding::Utf8, true, true, true),
            ),
        ] {
            let general =
                if encodings.is_null() { json!(null) } else { json!({"positionEncodings": encodings}) };
            let facts = facts(json!({
                "processId": 4242,
                "rootUri": "file:///tmp/project",
                "capabilities": {"workspace": workspace, "general": general},
            }));
            let seen = (facts.encoding, facts.apply_edit, facts.document_changes, facts.change_annotations);
            assert_eq!(seen, expected, "{client}");
        }
    }

    #[test]
    fn a_client_that_says_nothing_offers_nothing() {
        let nothing = ClientFacts { ask_actions: true, ..ClientFacts::default() };
        assert_eq!(facts(json!({"processId": null, "capabilities": {}})), nothing);
    }

    #[test]
    fn window_and_lens_capabilities() {
        let facts = facts(json!({
            "clientInfo": {"name": "editor"},
            "capabilities": {
                "window": {"workDoneProgress": true, "showMessage": {"messageActionItem": {}},
                    "showDocument": {"support": true}},
                "workspace": {"codeLens": {"refreshSupport": true}},
            },
        }));
        assert_eq!((facts.name.as_deref(), facts.version.as_deref()), (Some("editor"), None));
        assert!(facts.work_done_progress && facts.show_message_request && facts.code_lens_refresh);
        assert!(facts.show_document);
    }

    #[test]
    fn capabilities_for_the_review_of_changes() {
        let facts = facts(json!({
            "capabilities": {"textDocument": {
                "codeAction": {
                    "codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}},
                    "honorsChangeAnnotations": true,
                },
                "hover": {"contentFormat": ["plaintext", "markdown"]},
            }},
        }));
        assert!(facts.code_action_literals && facts.honors_change_annotations && facts.hover_markdown);
    }

    #[test]
    fn what_a_client_does_not_report_is_taken_from_its_options() {
        let with = |unsaid: Value| {
            facts(json!({
                "capabilities": {"workspace": {"applyEdit": false, "configuration": true}},
                "initializationOptions": {"clientCapabilities": unsaid},
            }))
        };
        let said = with(json!({"workspace": {"applyEdit": true}, "window": {"showMessage": {}}}));
        assert!(said.apply_edit && said.configuration && said.show_message_request);
        for garbage in [json!(null), json!(7), json!({"workspace": {"applyEdit": "yes"}})] {
            let facts = with(garbage.clone());
            assert!(!facts.apply_edit && facts.configuration, "{garbage}");
        }
    }

    #[test]
    fn workspace_roots_come_from_the_newest_form_that_names_one() {
        let root =
            |name: &str, path: &str| WorkspaceRoot { name: name.into(), path: AbsPath::new(path).unwrap() };
        for (params, expected) in [
            (
                json!({"workspaceFolders": [{"uri": "file:///a%20b", "name": "A"}, {"uri": "ssh://x/y", "name": "Y"}],
                    "rootUri": "file:///c", "rootPath": "/d"}),
                vec![root("A", "/a b")],
            ),
            (
                json!({"workspaceFolders": null, "rootUri": "file:///c", "rootPath": "/d"}),
                vec![root("c", "/c")],
            ),
            (json!({"workspaceFolders": [], "rootUri": null, "rootPath": "/d/e"}), vec![root("e", "/d/e")]),
            (json!({"rootPath": "relative"}), vec![]),
        ] {
            let mut params = params;
            params["capabilities"] = json!({});
            let shown = params.to_string();
            assert_eq!(facts(params).roots, expected, "{shown}");
        }
    }

    #[test]
    fn a_plugin_says_what_it_can_do() {
        let with = |experimental: Value| facts(json!({"capabilities": {"experimental": experimental}})).kode;
        assert_eq!(
            with(json!({"kode": {"protocolVersion": 1, "events": true, "newer": {}}, "other": 1})),
            ClientKode { protocol_version: 1, events: true, ..ClientKode::default() }
        );
        for garbage in [
            json!(null),
            json!("x"),
            json!([]),
            json!({"kode": 7}),
            json!({"kode": {"events": "yes"}}),
            json!({"kode": {"protocolVersion": 2, "events": true}}),
        ] {
            assert_eq!(with(garbage.clone()), ClientKode::default(), "{garbage}");
        }
    }
}
