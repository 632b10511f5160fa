//! One `initialize` of an editor for two servers, and one answer of both.
//!
//! Rule: the wrapped server gets what the editor sent, and its choice of position encoding holds for both. The answer has the
//! features of both; where only one of two settings is possible, that of the wrapped server counts.

use serde_json::{Map, Value, json};

/// The field of `initializationOptions` with the options of the agent.
const OPTIONS: &str = "kode-ls";

/// The notifications that the wrapped server wants, and the requests that it answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChildOffer {
    capabilities: Value,
    /// The methods that it has registered later.
    registered: Vec<(String, String)>,
}

/// A registration at the editor that outlives the server.
pub(super) type Registration = (String, String);

/// The most registrations that are kept.
const MAX_REGISTRATIONS: usize = 1_000;

/// The parameters of `initialize` for the wrapped server, and those for the agent before the encoding is known.
pub(super) fn split(params: &Value) -> (Value, Value) {
    let (mut theirs, mut ours) = (params.clone(), params.clone());
    let options = params.pointer("/initializationOptions").cloned().unwrap_or_default();
    ours["initializationOptions"] = options.get(OPTIONS).cloned().unwrap_or_default();
    if let Some(options) = theirs.get_mut("initializationOptions").and_then(Value::as_object_mut) {
        options.shift_remove(OPTIONS);
    }
    (theirs, ours)
}

/// Offers progress in the name of an editor that shows none. Returns whether it does: the agent's tools wait for a server that says
/// what it does.
pub(super) fn offer_progress(params: &mut Value) -> bool {
    if params.pointer("/capabilities/window/workDoneProgress") == Some(&Value::Bool(true)) {
        return true;
    }
    set(params, "window", "workDoneProgress", json!(true));
    false
}

/// Sets an option of the editor's capabilities.
fn set(params: &mut Value, group: &str, name: &str, value: Value) {
    let capabilities = &mut params["capabilities"];
    if !capabilities.is_object() {
        *capabilities = json!({});
    }
    if !capabilities[group].is_object() {
        capabilities[group] = json!({});
    }
    capabilities[group][name] = value;
}

/// The encoding that a server has chosen in its answer to `initialize`.
pub(super) fn encoding(result: &Value) -> &str {
    let chosen = result.pointer("/capabilities/positionEncoding").or_else(|| result.get("offsetEncoding"));
    chosen.and_then(Value::as_str).unwrap_or("utf-16")
}

/// Restricts what the editor offers to one encoding.
pub(super) fn restrict(params: &mut Value, encoding: &str) {
    set(params, "general", "positionEncodings", json!([encoding]));
}

/// The answer of both servers to `initialize`.
pub(super) fn merge(theirs: &Value, ours: &Value) -> Value {
    let mut merged = theirs.clone();
    let chosen = encoding(theirs).to_owned();
    let mut all = theirs["capabilities"].as_object().cloned().unwrap_or_default();
    let own = ours["capabilities"].as_object().cloned().unwrap_or_default();
    for (name, own) in own {
        let theirs = all.get(&name).cloned().unwrap_or_default();
        let both = match name.as_str() {
            "positionEncoding" => Value::from(chosen.as_str()),
            "textDocumentSync" => sync(&theirs, &own),
            "codeActionProvider" => code_actions(&theirs, &own),
            "completionProvider" => with_lists(&theirs, &own, "triggerCharacters"),
            "executeCommandProvider" => with_lists(&theirs, &own, "commands"),
            "workspace" | "experimental" => objects(&theirs, &own),
            _ if theirs.is_null() || theirs == false => own,
            _ => theirs,
        };
        all.insert(name, both);
    }
    if !merged.is_object() {
        merged = json!({});
    }
    if merged["serverInfo"].is_null() {
        merged["serverInfo"] = ours["serverInfo"].clone();
    }
    merged["capabilities"] = Value::Object(all);
    merged
}

/// Document sync that gives each what it needs: whole texts where the wrapped server wants them, which the agent takes as well.
fn sync(theirs: &Value, own: &Value) -> Value {
    let theirs = sync_options(theirs);
    let mut both = own.as_object().cloned().unwrap_or_default();
    for (name, value) in &theirs {
        let counts = match name.as_str() {
            "change" => value.as_u64().is_some_and(|kind| kind > 0),
            "save" => value.pointer("/includeText") == Some(&Value::Bool(true)),
            _ => !value.is_null() && *value != false,
        };
        if counts {
            both.insert(name.clone(), value.clone());
        }
    }
    Value::Object(both)
}

/// The long form of `textDocumentSync`.
fn sync_options(sync: &Value) -> Map<String, Value> {
    match sync {
        Value::Object(options) => options.clone(),
        Value::Number(kind) => {
            let open_close = Value::from(kind.as_u64() != Some(0));
            // The short form promises `didSave` too.
            Map::from_iter([
                ("openClose".to_owned(), open_close.clone()),
                ("change".to_owned(), sync.clone()),
                ("save".to_owned(), open_close),
            ])
        }
        _ => Map::new(),
    }
}

/// Kinds are a promise to have no others: without those of the wrapped server the list is left out.
fn code_actions(theirs: &Value, own: &Value) -> Value {
    match theirs {
        Value::Object(options) if options.contains_key("codeActionKinds") => {
            with_lists(theirs, own, "codeActionKinds")
        }
        Value::Object(_) | Value::Bool(true) => theirs.clone(),
        _ => own.clone(),
    }
}

/// The options of the wrapped server with the entries of both in one of the lists.
fn with_lists(theirs: &Value, own: &Value, list: &str) -> Value {
    if !theirs.is_object() {
        return own.clone();
    }
    let mut both = theirs.clone();
    let mut entries = theirs[list].as_array().cloned().unwrap_or_default();
    for entry in own[list].as_array().into_iter().flatten() {
        if !entries.contains(entry) {
            entries.push(entry.clone());
        }
    }
    both[list] = Value::Array(entries);
    both
}

/// The fields of both; of two fields with one name, their fields, and in the end the value of the wrapped server.
fn objects(theirs: &Value, own: &Value) -> Value {
    match (theirs, own) {
        (Value::Object(theirs), Value::Object(own)) => {
            let mut both = theirs.clone();
            for (name, own) in own {
                let merged = objects(theirs.get(name).unwrap_or(&Value::Null), own);
                both.insert(name.clone(), merged);
            }
            Value::Object(both)
        }
        (Value::Null | Value::Bool(false), own) => own.clone(),
        (theirs, _) => theirs.clone(),
    }
}

impl ChildOffer {
    /// The offers of a server in its answer to `initialize`.
    pub(super) fn of(result: &Value) -> Self {
        Self { capabilities: result["capabilities"].clone(), registered: Vec::new() }
    }

    /// Notes what it registers at the editor.
    pub(super) fn register(&mut self, params: &Value) {
        for one in params["registrations"].as_array().into_iter().flatten() {
            let field = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            if self.registered.len() < MAX_REGISTRATIONS {
                self.registered.push((field("id"), field("method")));
            }
        }
    }

    /// Notes what it takes back.
    pub(super) fn unregister(&mut self, params: &Value) {
        // The protocol spells it so.
        for one in params["unregisterations"].as_array().into_iter().flatten() {
            self.registered.retain(|(id, _)| one["id"] != id.as_str());
        }
    }

    /// The registrations at the editor.
    pub(super) fn registered(&self) -> &[Registration] {
        &self.registered
    }

    /// Whether it takes this message, which both may be for.
    pub(super) fn takes(&self, method: &str) -> bool {
        if self.registered.iter().any(|(_, registered)| registered == method) {
            return true;
        }
        let sync = sync_options(&self.capabilities["textDocumentSync"]);
        let is_on = |value: Option<&Value>| {
            value.is_some_and(|value| !value.is_null() && *value != false && *value != 0)
        };
        match method {
            "textDocument/didOpen" | "textDocument/didClose" => is_on(sync.get("openClose")),
            "textDocument/didChange" => is_on(sync.get("change")),
            "textDocument/didSave" => is_on(sync.get("save")),
            "textDocument/willSave" => is_on(sync.get("willSave")),
            "workspace/didChangeWorkspaceFolders" => {
                is_on(self.capabilities.pointer("/workspace/workspaceFolders/changeNotifications"))
            }
            "textDocument/codeAction" => is_on(self.capabilities.get("codeActionProvider")),
            "textDocument/codeLens" => is_on(self.capabilities.get("codeLensProvider")),
            "textDocument/completion" => is_on(self.capabilities.get("completionProvider")),
            "textDocument/hover" => is_on(self.capabilities.get("hoverProvider")),
            _ => true,
        }
    }

    /// Whether it computes the edits that go with files being moved.
    pub(super) fn moves_files(&self) -> bool {
        let option = self.capabilities.pointer("/workspace/fileOperations/willRename");
        option.is_some_and(|option| !option.is_null())
    }

    /// Whether it publishes no diagnostics and is asked for them.
    pub(super) fn is_pulled(&self) -> bool {
        self.capabilities.get("diagnosticProvider").is_some_and(Value::is_object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Value {
        json!({
            "capabilities": {
                "positionEncoding": "utf-8",
                "textDocumentSync": { "openClose": true, "change": 2, "willSave": true, "save": { "includeText": false } },
                "codeActionProvider": { "codeActionKinds": ["quickfix", "source.kode"] },
                "completionProvider": { "resolveProvider": false, "triggerCharacters": ["@", "/"] },
                "executeCommandProvider": { "commands": ["kode.ask"] },
                "hoverProvider": true,
                "codeLensProvider": { "resolveProvider": false },
                "workspace": { "workspaceFolders": { "supported": true, "changeNotifications": true } },
                "experimental": { "kode": { "protocolVersion": 1 } },
            },
            "serverInfo": { "name": "kode-ls" },
        })
    }

    #[test]
    fn the_answer_to_initialize_has_the_features_of_both() {
        let theirs = json!({
            "capabilities": {
                "textDocumentSync": 1,
                "codeActionProvider": { "codeActionKinds": ["quickfix", "refactor"], "resolveProvider": true },
                "completionProvider": { "resolveProvider": true, "triggerCharacters": [".", "/"], "allCommitCharacters": [";"] },
                "executeCommandProvider": { "commands": ["theirs.fix"] },
                "hoverProvider": { "workDoneProgress": true },
                "definitionProvider": true,
                "workspace": { "fileOperations": { "willRename": {} }, "workspaceFolders": { "supported": false } },
                "experimental": { "onEnter": true },
            },
            "serverInfo": { "name": "theirs", "version": "1" },
            "more": 7,
        });
        let expected = json!({
            "capabilities": {
                "textDocumentSync": { "openClose": true, "change": 1, "willSave": true, "save": { "includeText": false } },
                "codeActionProvider": { "codeActionKinds": ["quickfix", "refactor", "source.kode"], "resolveProvider": true },
                "completionProvider": {
                    "resolveProvider": true, "triggerCharacters": [".", "/", "@"], "allCommitCharacters": [";"],
                },
                "executeCommandProvider": { "commands": ["theirs.fix", "kode.ask"] },
                "hoverProvider": { "workDoneProgress": true },
                "definitionProvider": true,
                "workspace": {
                    "fileOperations": { "willRename": {} },
                    "workspaceFolders": { "supported": true, "changeNotifications": true },
                },
                "experimental": { "onEnter": true, "kode": { "protocolVersion": 1 } },
                "positionEncoding": "utf-16",
                "codeLensProvider": { "resolveProvider": false },
            },
            "serverInfo": { "name": "theirs", "version": "1" },
            "more": 7,
        });
        assert_eq!(merge(&theirs, &own()), expected);
    }

    #[test]
    fn without_features_of_the_other_the_answer_is_that_of_the_agent() {
        let merged = merge(&json!({ "capabilities": {} }), &own());
        let mut expected = own();
        expected["capabilities"]["positionEncoding"] = json!("utf-16");
        assert_eq!(merged, expected);
    }

    #[test]
    fn sync_gives_each_what_it_needs() {
        for (theirs, change, save) in [
            (json!(2), 2, json!({ "includeText": false })),
            (json!(0), 2, json!({ "includeText": false })),
            (json!(null), 2, json!({ "includeText": false })),
            (json!({ "change": 1, "save": { "includeText": true } }), 1, json!({ "includeText": true })),
        ] {
            let both = sync(&theirs, &own()["capabilities"]["textDocumentSync"]);
            assert_eq!((&both["change"], &both["save"]), (&json!(change), &save), "{theirs}");
            assert_eq!((&both["openClose"], &both["willSave"]), (&json!(true), &json!(true)), "{theirs}");
        }
    }

    #[test]
    fn code_actions_of_any_kind_stay_code_actions_of_any_kind() {
        let own = own()["capabilities"]["codeActionProvider"].clone();
        assert_eq!(code_actions(&json!(true), &own), json!(true));
        assert_eq!(
            code_actions(&json!({ "resolveProvider": true }), &own),
            json!({ "resolveProvider": true })
        );
        assert_eq!(code_actions(&json!(false), &own), own);
    }

    #[test]
    fn the_encoding_of_the_wrapped_server_is_all_that_the_agent_is_offered() {
        for (result, expected) in [
            (json!({ "capabilities": { "positionEncoding": "utf-8" } }), "utf-8"),
            (json!({ "capabilities": {}, "offsetEncoding": "utf-32" }), "utf-32"),
            (json!({ "capabilities": {} }), "utf-16"),
        ] {
            let mut params = json!({ "capabilities": { "general": { "positionEncodings": ["utf-8", "utf-16"], "x": 1 } } });
            restrict(&mut params, encoding(&result));
            let expected = json!({ "positionEncodings": [expected], "x": 1 });
            assert_eq!(params["capabilities"]["general"], expected);
        }
        let mut params = json!({});
        restrict(&mut params, "utf-16");
        assert_eq!(params["capabilities"]["general"]["positionEncodings"], json!(["utf-16"]));
    }

    #[test]
    fn progress_is_offered_where_the_editor_shows_none() {
        let mut params = json!({ "capabilities": { "window": { "x": 1 } } });
        assert!(!offer_progress(&mut params));
        assert_eq!(params["capabilities"]["window"], json!({ "x": 1, "workDoneProgress": true }));
        assert!(offer_progress(&mut params), "it is not offered twice");
    }

    #[test]
    fn each_gets_its_own_options() {
        let params = json!({ "initializationOptions": { "kode-ls": { "mode": "plan" }, "theirs": 1 } });
        let (theirs, ours) = split(&params);
        assert_eq!(theirs["initializationOptions"], json!({ "theirs": 1 }));
        assert_eq!(ours["initializationOptions"], json!({ "mode": "plan" }));
        let (theirs, ours) = split(&json!({ "initializationOptions": null }));
        assert_eq!(
            (&theirs["initializationOptions"], &ours["initializationOptions"]),
            (&Value::Null, &Value::Null)
        );
    }

    #[test]
    fn a_server_gets_only_what_it_has_asked_for() {
        let mut offer = ChildOffer::of(
            &json!({ "capabilities": { "textDocumentSync": { "openClose": true, "change": 0 } } }),
        );
        assert!(offer.takes("textDocument/didOpen") && !offer.takes("textDocument/didChange"));
        assert!(!offer.takes("textDocument/didSave") && !offer.takes("textDocument/hover"));
        assert!(offer.takes("textDocument/definition"));
        offer.register(&json!({ "registrations": [{ "id": "1", "method": "textDocument/didSave" }] }));
        assert!(offer.takes("textDocument/didSave"));
        offer.unregister(&json!({ "unregisterations": [{ "id": "1", "method": "textDocument/didSave" }] }));
        assert!(!offer.takes("textDocument/didSave"));
        let short = ChildOffer::of(&json!({ "capabilities": { "textDocumentSync": 1 } }));
        assert!(short.takes("textDocument/didSave") && !short.takes("textDocument/willSave"));
    }
}
