//! The edits that a server computes, as changes of files.
//!
//! Rule: edits are of the text that the server had. Edits of another version, overlapping ones, and operations that change sets
//! do not have are refused as a whole: part of a rename is worse than none.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;

use crate::documents::SyncedText;
use crate::positions::{Encoding, LineIndex, PositionRange};
use crate::uri;
use kode_base::paths::Target;
use kode_text::edit::{FileChange, TextEdit};
use kode_text::workspace::{ReadError, Workspace};

/// The most files of one change.
const MAX_FILES: usize = 2_000;
/// The most edits of one change.
const MAX_EDITS: usize = 100_000;

/// Why edits cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EditFault {
    /// They are of another text than the server has by now.
    Moved(String),
    /// They cannot be applied, for this reason.
    Unusable(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LspTextEdit {
    range: PositionRange,
    new_text: String,
}

/// The edits of the files, by file in the order of their names.
#[derive(Default)]
struct FileEdits {
    edits: Vec<LspTextEdit>,
    version: Option<i64>,
    is_created: bool,
}

/// The changes that edits of a workspace make. `texts` are those that the server has.
pub(crate) async fn changes(
    edits: &[Value],
    workspace: &Workspace,
    texts: &HashMap<Target, SyncedText>,
    encoding: Encoding,
) -> Result<Vec<FileChange>, EditFault> {
    let mut files: BTreeMap<Target, FileEdits> = BTreeMap::new();
    for edit in edits {
        collect(edit, &mut files)?;
    }
    let count: usize = files.values().map(|file| file.edits.len()).sum();
    if files.len() > MAX_FILES || count > MAX_EDITS {
        let message =
            format!("it changes {} files at {count} places, which is too much for one change", files.len());
        return Err(EditFault::Unusable(message));
    }
    let mut changes = Vec::with_capacity(files.len());
    for (target, file) in files {
        changes.extend(change(target, file, workspace, texts, encoding).await?);
    }
    Ok(changes)
}

/// The files that edits of a workspace change.
pub(crate) fn targets(edits: &[Value]) -> Result<Vec<Target>, EditFault> {
    let mut files: BTreeMap<Target, FileEdits> = BTreeMap::new();
    for edit in edits {
        collect(edit, &mut files)?;
    }
    Ok(files.into_keys().collect())
}

/// The change that edits of one text make; `None` when they change nothing.
pub(crate) async fn text_change(
    edits: Value,
    target: &Target,
    workspace: &Workspace,
    texts: &HashMap<Target, SyncedText>,
    encoding: Encoding,
) -> Result<Option<FileChange>, EditFault> {
    let edits = parse_edits(&edits)?;
    let file = FileEdits { edits, ..FileEdits::default() };
    change(target.clone(), file, workspace, texts, encoding).await
}

fn collect(edit: &Value, files: &mut BTreeMap<Target, FileEdits>) -> Result<(), EditFault> {
    if let Some(list) = edit.get("documentChanges").and_then(Value::as_array) {
        return list.iter().try_for_each(|change| collect_change(change, files));
    }
    for (uri, edits) in edit.get("changes").and_then(Value::as_object).into_iter().flatten() {
        let edits = parse_edits(edits)?;
        files.entry(target_of(uri)?).or_default().edits.extend(edits);
    }
    Ok(())
}

fn collect_change(change: &Value, files: &mut BTreeMap<Target, FileEdits>) -> Result<(), EditFault> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    if let Some(kind) = text(change, "kind") {
        if kind != "create" {
            let reason = format!("it has to {kind} a file, which is done with a command");
            return Err(EditFault::Unusable(reason));
        }
        let uri = text(change, "uri").unwrap_or_default();
        files.entry(target_of(&uri)?).or_default().is_created = true;
        return Ok(());
    }
    let document = change.get("textDocument").unwrap_or(&Value::Null);
    let uri = text(document, "uri").unwrap_or_default();
    let edits = parse_edits(change.get("edits").unwrap_or(&Value::Null))?;
    let file = files.entry(target_of(&uri)?).or_default();
    file.version = document.get("version").and_then(Value::as_i64).or(file.version);
    file.edits.extend(edits);
    Ok(())
}

fn target_of(uri: &str) -> Result<Target, EditFault> {
    uri::target(uri).ok_or_else(|| EditFault::Unusable(format!("it changes `{uri}`, which is not a file")))
}

fn parse_edits(edits: &Value) -> Result<Vec<LspTextEdit>, EditFault> {
    if edits.is_null() {
        return Ok(Vec::new());
    }
    Vec::deserialize(edits).map_err(|error| {
        EditFault::Unusable(format!("its edits do not have the form of the protocol: {error}"))
    })
}

async fn change(
    target: Target,
    file: FileEdits,
    workspace: &Workspace,
    texts: &HashMap<Target, SyncedText>,
    encoding: Encoding,
) -> Result<Option<FileChange>, EditFault> {
    let shown = workspace.display(&target);
    let base = match texts.get(&target) {
        Some(synced) => {
            if file.version.is_some_and(|version| version != synced.version) {
                return Err(EditFault::Moved(shown));
            }
            Some(synced.file.clone())
        }
        None => match workspace.text(&target).await {
            Ok(text) => Some(text),
            Err(ReadError::NotFound { .. }) if file.is_created => None,
            Err(error) => return Err(EditFault::Unusable(error.to_string())),
        },
    };
    let text = base.as_ref().map_or("", |base| &*base.text);
    let edits = byte_edits(&file.edits, text, encoding)
        .map_err(|reason| EditFault::Unusable(format!("its edits of `{shown}` {reason}")))?;
    if edits.is_empty() && base.is_some() {
        return Ok(None);
    }
    if let Some(base) = &base {
        let new_text = kode_text::edit::change::apply_edits(text, &edits);
        base.check_writable_as(&new_text)
            .map_err(|error| EditFault::Unusable(format!("`{shown}`: {error}")))?;
    }
    Ok(Some(FileChange { target, base, edits }))
}

/// The edits in bytes, sorted; without those that change nothing. Insertions at one place stay in their order.
fn byte_edits(edits: &[LspTextEdit], text: &str, encoding: Encoding) -> Result<Vec<TextEdit>, String> {
    let index = LineIndex::new(text);
    let mut all = Vec::with_capacity(edits.len());
    for edit in edits {
        let range = index.range(edit.range, encoding).ok_or("end before they start")?;
        if text[range.clone()] != edit.new_text {
            all.push(TextEdit { range, new_text: edit.new_text.clone() });
        }
    }
    all.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut merged: Vec<TextEdit> = Vec::with_capacity(all.len());
    for edit in all {
        match merged.last_mut() {
            Some(last) if edit.range.start < last.range.end => return Err("overlap".to_owned()),
            Some(last) if edit.range.start == last.range.end => {
                last.range.end = edit.range.end;
                last.new_text.push_str(&edit.new_text);
            }
            _ => merged.push(edit),
        }
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kode_testing::text::Rig;

    fn range(start: (u32, u32), end: (u32, u32)) -> Value {
        json!({
            "start": { "line": start.0, "character": start.1 }, "end": { "line": end.0, "character": end.1 },
        })
    }

    fn edit(start: (u32, u32), end: (u32, u32), text: &str) -> Value {
        json!({ "range": range(start, end), "newText": text })
    }

    async fn changes_of(rig: &Rig, edit: Value) -> Result<Vec<FileChange>, EditFault> {
        changes(&[edit], rig.workspace(), &HashMap::new(), Encoding::Utf16).await
    }

    fn uri_of(rig: &Rig, name: &str) -> String {
        uri::of_path(&rig.root().join(name))
    }

    #[tokio::test]
    async fn edits_of_several_files_are_changes_in_bytes() {
        let rig = Rig::new();
        rig.write("a.rs", "𝄞 one\none\n");
        rig.write("b.rs", "one");
        let edit = json!({ "documentChanges": [
            { "textDocument": { "uri": uri_of(&rig, "b.rs"), "version": null }, "edits": [edit((0, 0), (0, 3), "two")] },
            { "textDocument": { "uri": uri_of(&rig, "a.rs"), "version": 3 },
              "edits": [edit((1, 0), (1, 3), "two"), edit((0, 3), (0, 6), "two")] },
            { "kind": "create", "uri": uri_of(&rig, "new.rs") },
            { "textDocument": { "uri": uri_of(&rig, "new.rs") }, "edits": [edit((0, 0), (0, 0), "mod a;\n")] },
        ]});
        let changes = changes_of(&rig, edit).await.unwrap();
        let texts: Vec<_> = changes.iter().map(FileChange::new_text).collect();
        assert_eq!(texts, ["𝄞 two\ntwo\n", "two", "mod a;\n"]);
        assert!(changes[2].base.is_none());
    }

    #[tokio::test]
    async fn edits_that_touch_are_one_and_those_that_change_nothing_are_none() {
        let rig = Rig::new();
        rig.write("a.rs", "one two\n");
        let uri = uri_of(&rig, "a.rs");
        let edits = json!([
            edit((0, 0), (0, 0), "b"),
            edit((0, 0), (0, 0), "a"),
            edit((0, 0), (0, 1), ""),
            edit((0, 4), (0, 7), "two"),
        ]);
        let changes = changes_of(&rig, json!({ "changes": { uri.clone(): edits } })).await.unwrap();
        assert_eq!(changes[0].edits, [TextEdit { range: 0..1, new_text: "ba".to_owned() }]);
        let nothing = json!({ "changes": { uri: [edit((0, 0), (0, 3), "one")] } });
        assert_eq!(changes_of(&rig, nothing).await.unwrap().len(), 0);
    }

    #[tokio::test]
    async fn what_cannot_be_applied_as_a_whole_is_refused() {
        let rig = Rig::new();
        rig.write("a.rs", "one two\n");
        let uri = uri_of(&rig, "a.rs");
        for (edit, said) in [
            (
                json!({ "changes": { uri.clone(): [edit((0, 0), (0, 3), "a"), edit((0, 2), (0, 4), "b")] } }),
                "overlap",
            ),
            (
                json!({ "documentChanges": [{ "kind": "rename", "oldUri": uri, "newUri": uri }] }),
                "rename a file",
            ),
            (json!({ "changes": { "untitled:1": [] } }), "not a file"),
            (json!({ "changes": { uri.clone(): [{ "snippet": "x" }] } }), "form of the protocol"),
            (json!({ "changes": { uri_of(&rig, "missing.rs"): [edit((0, 0), (0, 0), "a")] } }), "missing.rs"),
        ] {
            let Err(EditFault::Unusable(reason)) = changes_of(&rig, edit).await else { panic!("{said}") };
            assert!(reason.contains(said), "{said}: {reason}");
        }
    }

    #[tokio::test]
    async fn edits_of_an_older_version_are_refused() {
        let rig = Rig::new();
        rig.write("a.rs", "one\n");
        let target = Target::File(rig.root().join("a.rs"));
        let file = rig.workspace().text(&target).await.unwrap();
        let synced = SyncedText { file, version: 4, at: tokio::time::Instant::now() };
        let texts = HashMap::from([(target, synced)]);
        let of_version = |version: i64| {
            let document = json!({ "uri": uri_of(&rig, "a.rs"), "version": version });
            json!({ "documentChanges": [{ "textDocument": document, "edits": [edit((0, 0), (0, 3), "two")] }] })
        };
        let workspace = rig.workspace();
        let changed = changes(&[of_version(4)], workspace, &texts, Encoding::Utf8).await.unwrap();
        assert_eq!(changed[0].new_text(), "two\n");
        let moved = changes(&[of_version(3)], workspace, &texts, Encoding::Utf8).await;
        assert_eq!(moved.unwrap_err(), EditFault::Moved("a.rs".to_owned()));
    }
}
